"""Folders of published tasks in the format of ../shared/data/tasks, of every type, made by the tests."""

import json
from pathlib import Path
from typing import Any

REAL = {  # name -> lines of the file that is scored, where the real folders lie beside the checkout
    "Banking77Classification": 3080,
    "MSRParaphrase": 1725,
    "SICK-R": 4927,
    "STSBenchmark": 1379,
    "SciFact": 5183,
    "StackOverflowClustering": 20_000,
    "SummEval": 100,
    "WikiQAReranking": 237,
}


def write_tasks(root: Path) -> dict[str, int]:
    """Write the eight tasks, short, and return name -> lines of the file that is scored."""
    cards = [{"text": f"My card, “{k}”, is late…", "label": f"card_{k % 7}"} for k in range(154)]
    pairs = [{"sentence1": f"The world's {k} largest", "sentence2": f"Both are {k}"} for k in range(86)]
    documents = [{"_id": str(7 * k), "title": f"Title {k}.", "text": f"Text {k}."} for k in range(259)]
    claims = [{"_id": f"q{k}", "text": f"0-dimensional claim {k}."} for k in range(15)]
    ranked = [{"query": f"how {k}", "positive": [f"so {k}"], "negative": [f"not {k}", "never"]} for k in range(11)]
    titles = [{"sentences": f"How to {k}?", "labels": str(k % 20)} for k in range(1000)]
    machine = {"machine_summaries": ["short", "long"], "relevance": [5 / 3, 4.0]}
    news = [{"text": f"Article {k} .", "human_summaries": [f"Sum {k}."] * 11, **machine} for k in range(5)]
    sick, sts = {"min_score": 1, "max_score": 5}, {"min_score": 0, "max_score": 5}
    _write(root / "Banking77Classification", "Classification", {"train": cards[:70], "test": cards})
    _write(root / "MSRParaphrase", "PairClassification", {"test": [p | {"labels": k % 2} for k, p in enumerate(pairs)]})
    _write(root / "SICK-R", "STS", {"test": [p | {"score": 1 + k % 41 / 10} for k, p in enumerate(pairs)]}, **sick)
    _write(root / "STSBenchmark", "STS", {"test": [p | {"score": k % 26 / 5} for k, p in enumerate(pairs)]}, **sts)
    _write(root / "SciFact", "Retrieval", {"corpus": documents, "queries": claims})
    _write(root / "StackOverflowClustering", "Clustering", {"test": titles})
    _write(root / "SummEval", "Summarization", {"test": news}, **sts)
    _write(root / "WikiQAReranking", "Reranking", {"test": ranked})
    (root / "SciFact" / "qrels").mkdir()
    judged = "".join(f"q{k}\t{7 * k}\t1\n" for k in range(15))
    (root / "SciFact" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    files = {name: root / name / ("corpus.jsonl" if name == "SciFact" else "test.jsonl") for name in REAL}
    return {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in files.items()}


def _write(folder: Path, kind: str, files: dict[str, list[dict[str, Any]]], **scale: float) -> None:
    folder.mkdir(parents=True)
    about = {"name": folder.name, "type": kind, "main_score": None, "prompt": None, "source": "tests", **scale}
    (folder / "task.json").write_text(json.dumps(about, indent=1))
    for part, rows in files.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{part}.jsonl").write_text(text, encoding="utf-8")
