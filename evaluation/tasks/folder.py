"""`tasks_dir=<folder>`: one task a sub-folder, described by its task.json."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.errors import UserError, nearest
from encoders.templates import TEXT_FIELD
from evaluation.tasks import folder_files as files
from evaluation.tasks.folder_files import label, number, read_rows, text, texts
from evaluation.tasks.task_data import TYPES, TaskData
from records.foreign_files import read_object

Content = dict[str, Any]
Rows = list[dict[str, Any]]


def pair_classification(folder: Path) -> Content:
    """sentence1, sentence2, labels (0 or 1): one pair a line."""
    path = folder / "test.jsonl"
    rows = read_rows(path, {"sentence1": text, "sentence2": text, "labels": files.binary})
    fault = "has pairs of one label only. It needs some with 1 and some with 0."
    return _varied(path, rows, ("sentence1", "sentence2", "labels"), fault)


def sts(folder: Path) -> Content:
    """sentence1, sentence2, score."""
    path = folder / "test.jsonl"
    rows = read_rows(path, {"sentence1": text, "sentence2": text, "score": number})
    fault = "has one score alone, so no correlation with it. It needs two or more."
    return _varied(path, rows, ("sentence1", "sentence2", "score"), fault)


def clustering(folder: Path) -> Content:
    """sentences, labels: one sentence a line."""
    path = folder / "test.jsonl"
    rows = read_rows(path, {"sentences": text, "labels": label})
    rows = [{**row, "labels": str(row["labels"])} for row in rows]
    return _varied(path, rows, ("sentences", "labels"), "has one label only. It needs two or more.")


def _varied(path: Path, rows: Rows, names: tuple[str, ...], fault: str) -> Content:
    """The test split with the columns `names`. Raises `UserError`, saying `fault`, where the last has but one value."""
    if len({row[names[-1]] for row in rows}) < 2:
        raise UserError(f"{path} {fault}")
    return {"test": {name: [row[name] for row in rows] for name in names}}


def classification(folder: Path) -> Content:
    """text, label in train.jsonl and test.jsonl. Labels become numbers in their sorted order."""
    splits = {s: read_rows(folder / f"{s}.jsonl", {"text": text, "label": label}) for s in ("train", "test")}
    known = sorted({str(row["label"]) for row in splits["train"]})
    if len(known) < 2:
        raise UserError(f"{folder / 'train.jsonl'} has one class only. It needs two or more.")
    codes = {name: i for i, name in enumerate(known)}
    for row in splits["test"]:
        if str(row["label"]) not in codes:
            raise UserError(
                f"{folder / 'test.jsonl'}: the label '{row['label']}' does not occur in train.jsonl. Mend it."
            )
    return {
        split: {"text": [r["text"] for r in rows], "label": [codes[str(r["label"])] for r in rows]}
        for split, rows in splits.items()
    }


def summarization(folder: Path) -> Content:
    """text, human_summaries[], machine_summaries[], relevance[]: one grade a machine summary."""
    path = folder / "test.jsonl"
    checks = {"text": text, "human_summaries": texts, "machine_summaries": texts, "relevance": files.numbers}
    rows = read_rows(path, checks)
    for i, row in enumerate(rows, start=1):
        if len(row["relevance"]) != len(row["machine_summaries"]):
            raise UserError(
                f"{path}, record {i}: 'relevance' and 'machine_summaries' must be of equal length. Mend the line."
            )
    if all(len(set(row["relevance"])) < 2 for row in rows):
        raise UserError(f"{path} has no record whose relevance varies, so no correlation with it. It needs one.")
    return {"test": {name: [row[name] for row in rows] for name in checks}}


def reranking(folder: Path) -> Content:
    """query, positive[], negative[]: a record without a negative says nothing and is left out, as mteb does."""
    path = folder / "test.jsonl"

    def list_of_texts(value: Any) -> str:
        return "" if value == [] else texts(value)

    checks = {"query": text, "positive": list_of_texts, "negative": list_of_texts}
    rows = [r for r in read_rows(path, checks) if r["positive"] and r["negative"]]
    if not rows:
        raise UserError(f"{path} has no record with both a positive and a negative. It needs one.")
    content: Content = {"corpus": {}, "queries": {}, "qrels": {}, "top_ranked": {}}
    for i, row in enumerate(rows):
        query = f"q{i}"
        candidates = {f"{query}p{j}": (t, 1) for j, t in enumerate(row["positive"])}
        candidates |= {f"{query}n{j}": (t, 0) for j, t in enumerate(row["negative"])}
        content["queries"][query] = row["query"]
        content["corpus"] |= {key: {"title": "", "text": t} for key, (t, _) in candidates.items()}
        content["qrels"][query] = {key: grade for key, (_, grade) in candidates.items()}
        content["top_ranked"][query] = list(candidates)
    return content


def retrieval(folder: Path) -> Content:
    """corpus.jsonl (_id, title, text), queries.jsonl (_id, text), qrels/test.tsv; only judged queries are kept.
    Real collections have empty documents and queries, and judgements of what is not there: they are left out, and
    `left_out` counts them (of what is not judged, the documents alone)."""
    documents, asked = _by_id(folder / "corpus.jsonl"), _by_id(folder / "queries.jsonl")
    odd = next((key for key, r in documents.items() if r.get("title") is not None and files.string(r["title"])), None)
    if odd is not None:
        raise UserError(f"{folder / 'corpus.jsonl'}: the document '{odd}': 'title' must be a text. Mend the line.")
    corpus = {key: {"title": str(r.get("title") or ""), "text": r["text"]} for key, r in documents.items()}
    corpus = {key: doc for key, doc in corpus.items() if (doc["title"] + doc["text"]).strip()}
    queries = {key: row["text"] for key, row in asked.items() if row["text"].strip()}
    empty = [f"{folder / 'corpus.jsonl'}: the document '{key}'" for key in documents if key not in corpus]
    files.refuse_many(empty, len(documents), "documents")
    qrels, left_out = files.read_qrels(folder / "qrels" / "test.tsv", queries, corpus)
    return {
        "corpus": corpus,
        "queries": {query: queries[query] for query in qrels},
        "qrels": qrels,
        "top_ranked": None,
        "left_out": {"documents": len(empty), **left_out},
    }


def _by_id(path: Path) -> dict[str, dict[str, Any]]:
    rows = read_rows(path, {"_id": label, "text": files.string})
    counts = Counter(str(row["_id"]) for row in rows)
    double = next((name for name, count in counts.items() if count > 1), None)
    if double is not None:
        raise UserError(f"{path}: the _id '{double}' is there twice. Each needs its own.")
    return {str(row["_id"]): row for row in rows}


KINDS: dict[str, tuple[Callable[[Path], Content], str]] = {  # reader, main score
    "Retrieval": (retrieval, "ndcg_at_10"),
    "Reranking": (reranking, "map_at_1000"),
    "Classification": (classification, "accuracy"),
    "Clustering": (clustering, "v_measure"),
    "PairClassification": (pair_classification, "max_ap"),
    "STS": (sts, "cosine_spearman"),
    "Summarization": (summarization, "cosine_spearman"),
}
# of a task, and so of its files
NAME = re.compile(r"[^./\x00-\x1f][^/\x00-\x1f]{0,79}")
NO_NAMES = ("model_meta", "manifest", "tasks", "experiment_params")  # .json: lie beside scores and are none
EMBEDDED = 2048  # documents of a clustering task that are embedded, drawn by mteb's seed: its own choice for v2 tasks


def folder_tasks(root: Path, only: list[str] | None = None) -> list[TaskData]:
    """Read the tasks below `root` (or the one that `root` itself is), by name; `only` names those wanted.
    Raises `UserError` with file and line for what is malformed."""
    if not root.is_dir():
        raise UserError(f"There is no folder {root}. Give tasks_dir=<folder of task folders>.")
    folders = [root] if (root / "task.json").is_file() else sorted(p.parent for p in root.glob("*/task.json"))
    if not folders:
        raise UserError(f"No task.json in {root} or one level below. Each task folder needs one (name, type).")
    described = {folder: _description(folder / "task.json") for folder in folders}
    names = [about["name"] for about in described.values()]
    double = next((n for n in names if names.count(n) > 1), None)
    if double:
        raise UserError(f"Two folders in {root} call themselves '{double}'. Rename one in its task.json.")
    for name in only or ():
        if name not in names:
            raise UserError(f"There is no task '{name}' in {root}. {nearest(name, names)}")
    return [_task(folder, about) for folder, about in described.items() if not only or about["name"] in only]


def _description(path: Path) -> dict[str, Any]:
    about = read_object(path, "Write an object with name and type.")
    for key in ("name", "type"):
        if not isinstance(about.get(key), str) or not about[key]:
            raise UserError(f'{path}: the key \'{key}\' is missing. Write {{"name": ..., "type": ...}}.')
    if about["type"] not in TYPES:
        raise UserError(f"{path}: there is no type '{about['type']}'. {nearest(about['type'], TYPES)}")
    if not NAME.fullmatch(about["name"]) or not files.is_whole(about["name"]) or about["name"] in NO_NAMES:
        raise UserError(
            f"{path}: the name {about['name'][:40]!r} becomes that of a file of scores, and cannot. Change it."
        )
    main_score, prompt = about.get("main_score"), about.get("prompt")
    if main_score is not None and not isinstance(main_score, str):
        raise UserError(f"{path}: main_score must be the name of a measure, such as {KINDS[about['type']][1]}.")
    sides = prompt if isinstance(prompt, dict) else {"query": "" if prompt is None else prompt}
    faults = [wrong for words in sides.values() if (wrong := files.string(words) or TEXT_FIELD * (TEXT_FIELD in words))]
    if not set(sides) <= {"query", "document"} or faults:
        raise UserError(
            f'{path}: prompt must be a sentence without {TEXT_FIELD}, or {{"query": "...", "document": "..."}}. '
            "Mend it."
        )
    return about


def _task(folder: Path, about: dict[str, Any]) -> TaskData:
    kind = about["type"]
    reader, main_score = KINDS[kind]
    content = reader(folder)
    left_out = {what: count for what, count in content.pop("left_out", {}).items() if count}
    settings: dict[str, Any] = {}
    if kind in ("STS", "Summarization"):  # the ends of the scale; mteb's default is 0 to 5
        low, high = about.get("min_score", 0), about.get("max_score", 5)
        if number(low) or number(high) or low >= high:
            raise UserError(f"{folder / 'task.json'}: min_score and max_score must be numbers, the first the smaller.")
        settings = {"min_score": low, "max_score": high}
    if kind == "Clustering":
        embedded = min(EMBEDDED, len(content["test"]["labels"]))
        settings = {
            "max_fraction_of_documents_to_embed": None,  # mteb's default, 4 %, is meant for huge data sets
            "max_document_to_embed": embedded,
            "max_documents_per_cluster": embedded,  # of each bootstrap
        }
    main_score, source = about.get("main_score") or main_score, str(about.get("source") or folder)
    return TaskData(about["name"], kind, main_score, source, content, about.get("prompt"), settings, left_out)
