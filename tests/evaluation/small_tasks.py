"""A folder with one small task of each type; a bag of words is perfect on all of them."""

import json
from pathlib import Path
from typing import Any

TOPICS = {
    "fruit": "apple pear plum cherry grape melon fig lime",
    "tools": "hammer saw drill plane chisel file clamp vice",
}
Rows = list[dict[str, Any]]


def write_tasks(root: Path) -> Path:
    """Write the seven tasks below `root`, which is returned."""
    lines = {t: [f"{a} {b} {t}" for a in w.split() for b in w.split() if a < b] for t, w in TOPICS.items()}
    labelled = [(text, topic) for topic, texts in lines.items() for text in texts]
    fruit, tools = lines["fruit"], lines["tools"]
    same = [(a, " ".join(reversed(a.split())), 1) for a in fruit]
    pairs = same + [(a, b, 0) for a, b in zip(fruit, tools, strict=True)]
    words = ["apple", "pear", "plum", "lime"]
    graded = [(" ".join(words), " ".join(words[:k]), k) for k in (1, 2, 3, 4)]
    corpus: Rows = [{"_id": f"d{i}", "title": "", "text": t} for i, (t, _) in enumerate(labelled)]
    queries: Rows = [{"_id": f"q{i}", "text": t} for i, (t, _) in enumerate(labelled[:9])]
    summaries = {"machine_summaries": [b for _, b, _ in graded], "relevance": [k for *_, k in graded]}
    _write(root / "Asked", "Retrieval", {"corpus": corpus, "queries": queries})
    (root / "Asked" / "qrels").mkdir()
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(9))
    (root / "Asked" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    tests: dict[str, tuple[str, Rows]] = {
        "Ranked": ("Reranking", [{"query": a, "positive": [a], "negative": tools[:5]} for a in fruit[:7]]),
        "Clusters": ("Clustering", [{"sentences": t, "labels": c} for t, c in labelled]),
        "Pairs": ("PairClassification", [{"sentence1": a, "sentence2": b, "labels": y} for a, b, y in pairs]),
        "Graded": ("STS", [{"sentence1": a, "sentence2": b, "score": k} for a, b, k in graded]),
        "Summaries": ("Summarization", [{"text": "a", "human_summaries": [" ".join(words)], **summaries}] * 2),
    }
    for name, (kind, rows) in tests.items():
        _write(root / name, kind, {"test": rows})
    classes: Rows = [{"text": t, "label": c} for t, c in labelled]
    _write(root / "Classes", "Classification", {"train": classes[::2], "test": classes[1::2]})
    return root


def _write(folder: Path, kind: str, files: dict[str, Rows]) -> None:
    folder.mkdir(parents=True)
    (folder / "task.json").write_text(json.dumps({"name": folder.name, "type": kind}))
    for file, rows in files.items():
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
