"""Columns of a task folder by type -> the content of a `TaskData`. Columns are those of mteb's hub data sets."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluation.folder_files import binary, label, number, numbers, read_qrels, read_rows, refuse_many, text, texts
from records.errors import UserError

Content = dict[str, Any]


def pair_classification(folder: Path) -> Content:
    """sentence1, sentence2, labels (0 or 1): one pair a line."""
    path = folder / "test.jsonl"
    rows = read_rows(path, {"sentence1": text, "sentence2": text, "labels": binary})
    if {row["labels"] for row in rows} != {0, 1}:
        raise UserError(f"{path} has pairs of one label only. It needs some with 1 and some with 0.")
    return {"test": _columns(rows, ("sentence1", "sentence2", "labels"))}


def sts(folder: Path) -> Content:
    """sentence1, sentence2, score."""
    path = folder / "test.jsonl"
    rows = read_rows(path, {"sentence1": text, "sentence2": text, "score": number})
    if len({row["score"] for row in rows}) < 2:
        raise UserError(f"{path} has one score alone, so no correlation with it. It needs two or more.")
    return {"test": _columns(rows, ("sentence1", "sentence2", "score"))}


def classification(folder: Path) -> Content:
    """text, label in train.jsonl and test.jsonl. Labels become numbers in their sorted order."""
    splits = {s: read_rows(folder / f"{s}.jsonl", {"text": text, "label": label}) for s in ("train", "test")}
    known = sorted({str(row["label"]) for row in splits["train"]})
    if len(known) < 2:
        raise UserError(f"{folder / 'train.jsonl'} has one class only. It needs two or more.")
    codes = {name: i for i, name in enumerate(known)}
    for row in splits["test"]:
        if str(row["label"]) not in codes:
            raise UserError(f"{folder / 'test.jsonl'}: the label '{row['label']}' does not occur in train.jsonl.")
    return {
        split: {"text": [r["text"] for r in rows], "label": [codes[str(r["label"])] for r in rows]}
        for split, rows in splits.items()
    }


def clustering(folder: Path) -> Content:
    """sentences, labels: one sentence a line."""
    path = folder / "test.jsonl"
    rows = read_rows(path, {"sentences": text, "labels": label})
    if len({str(row["labels"]) for row in rows}) < 2:
        raise UserError(f"{path} has one label only. It needs two or more.")
    return {"test": {"sentences": [r["sentences"] for r in rows], "labels": [str(r["labels"]) for r in rows]}}


def summarization(folder: Path) -> Content:
    """text, human_summaries[], machine_summaries[], relevance[]: one grade a machine summary."""
    path = folder / "test.jsonl"
    checks = {"text": text, "human_summaries": texts, "machine_summaries": texts, "relevance": numbers}
    rows = read_rows(path, checks)
    for i, row in enumerate(rows, start=1):
        if len(row["relevance"]) != len(row["machine_summaries"]):
            raise UserError(f"{path}, record {i}: 'relevance' and 'machine_summaries' must be of equal length.")
    if all(len(set(row["relevance"])) < 2 for row in rows):
        raise UserError(f"{path} has no record whose relevance varies, so no correlation with it.")
    return {"test": _columns(rows, tuple(checks))}


def reranking(folder: Path) -> Content:
    """query, positive[], negative[]: a record without a negative says nothing and is left out, as mteb does."""
    path = folder / "test.jsonl"
    checks = {"query": text, "positive": _maybe_texts, "negative": _maybe_texts}
    rows = [r for r in read_rows(path, checks) if r["positive"] and r["negative"]]
    if not rows:
        raise UserError(f"{path} has no record with both a positive and a negative.")
    content: Content = {"corpus": {}, "queries": {}, "qrels": {}, "top_ranked": {}}
    for i, row in enumerate(rows):
        query = f"q{i}"
        found = {f"{query}p{j}": (t, 1) for j, t in enumerate(row["positive"])}
        found |= {f"{query}n{j}": (t, 0) for j, t in enumerate(row["negative"])}
        content["queries"][query] = row["query"]
        content["corpus"] |= {key: {"title": "", "text": t} for key, (t, _) in found.items()}
        content["qrels"][query] = {key: grade for key, (_, grade) in found.items()}
        content["top_ranked"][query] = list(found)
    return content


def retrieval(folder: Path) -> Content:
    """corpus.jsonl (_id, title, text), queries.jsonl (_id, text), qrels/test.tsv; only judged queries are kept.

    Real collections have empty documents and queries, and judgements of what is not there: they are left out, and
    `left_out` counts them (of what is not judged, the documents alone).
    """
    documents, asked = _by_id(folder / "corpus.jsonl"), _by_id(folder / "queries.jsonl")
    corpus = {key: {"title": str(r.get("title") or ""), "text": r["text"]} for key, r in documents.items()}
    corpus = {key: doc for key, doc in corpus.items() if (doc["title"] + doc["text"]).strip()}
    queries = {key: row["text"] for key, row in asked.items() if row["text"].strip()}
    empty = [f"{folder / 'corpus.jsonl'}: the document '{key}'" for key in documents if key not in corpus]
    refuse_many(empty, len(documents), "documents")
    qrels, left_out = read_qrels(folder / "qrels" / "test.tsv", queries, corpus)
    left_out = {"documents": len(empty), **left_out}
    kept = {query: queries[query] for query in qrels}
    return {"corpus": corpus, "queries": kept, "qrels": qrels, "top_ranked": None, "left_out": left_out}


def _by_id(path: Path) -> dict[str, dict[str, Any]]:
    rows = read_rows(path, {"_id": label, "text": _string})
    found = {str(row["_id"]): row for row in rows}
    if len(found) < len(rows):
        double = next(name for name, count in Counter(str(row["_id"]) for row in rows).items() if count > 1)
        raise UserError(f"{path}: the _id '{double}' is there twice. Each needs its own.")
    return found


READERS: dict[str, Callable[[Path], Content]] = {
    "Retrieval": retrieval,
    "Reranking": reranking,
    "Classification": classification,
    "Clustering": clustering,
    "PairClassification": pair_classification,
    "STS": sts,
    "Summarization": summarization,
}


def _columns(rows: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names}


def _maybe_texts(value: Any) -> str:
    return "" if value == [] else texts(value)


def _string(value: Any) -> str:
    return "" if isinstance(value, str) else f"must be a text, not {type(value).__name__}"
