"""`tasks_dir=<folder>`: one task a sub-folder, described by its task.json."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from cli.errors import UserError, nearest, reading
from corpora.files import rows as rows_of
from evaluation.tasks.task_data import TYPES, TaskData

Content = dict[str, Any]
Rows = list[dict[str, Any]]
MOST_LEFT_OUT = 0.01  # share of judgements that a collection may lack: more of them are ids that do not match
Kind = type | tuple[type, ...] | list[Any]  # the kinds of one value; [kind]: of each value of a list
Judgements = dict[str, dict[str, int]]  # query -> document -> grade
NUMBER, LABEL, PROMPT, TEXTS = (int, float), (str, int), (str, dict), [str]
WORDS = {str: "a text", int: "a whole number", NUMBER: "a number", LABEL: "a text or a whole number", PROMPT: "a text"}


def table(**columns: Kind) -> Callable[[Path], Content]:
    """Return the reader of test.jsonl with these columns. It refuses one value alone in the last of them."""

    def read(folder: Path) -> Content:
        path, last = folder / "test.jsonl", list(columns)[-1]
        rows = read_rows(path, columns)
        if len({row[last] for row in rows}) < 2:
            raise UserError(f"{path} has one value of {last} alone, so nothing to score. It needs two or more.")
        if wrong := [i for i, row in enumerate(rows, 1) if columns[last] is int and row[last] not in (0, 1)]:
            raise UserError(f"{path}, record {wrong[0]}: '{last}' must be 0 or 1. Mend the line.")
        return {"test": {name: [row[name] for row in rows] for name in columns}}

    return read


def clustering(folder: Path) -> Content:
    """sentences, labels: one sentence a line."""
    test = table(sentences=str, labels=LABEL)(folder)["test"]
    return {"test": {**test, "labels": [str(label) for label in test["labels"]]}}


def classification(folder: Path) -> Content:
    """text, label in train.jsonl and test.jsonl. Labels become numbers in their sorted order."""
    splits = {s: read_rows(folder / f"{s}.jsonl", {"text": str, "label": LABEL}) for s in ("train", "test")}
    codes = {name: i for i, name in enumerate(sorted({str(row["label"]) for row in splits["train"]}))}
    if len(codes) < 2:
        raise UserError(f"{folder / 'train.jsonl'} has one class only. It needs two or more.")
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
    lists: dict[str, Kind] = {"human_summaries": TEXTS, "machine_summaries": TEXTS, "relevance": [NUMBER]}
    rows = read_rows(path, columns := {"text": str, **lists})
    for i, row in enumerate(rows, start=1):
        if len(row["relevance"]) != len(row["machine_summaries"]):
            raise UserError(
                f"{path}, record {i}: 'relevance' and 'machine_summaries' must be of equal length. Mend the line."
            )
    if all(len(set(row["relevance"])) < 2 for row in rows):
        raise UserError(f"{path} has no record whose relevance varies, so nothing to score. It needs one.")
    return {"test": {name: [row[name] for row in rows] for name in columns}}


def reranking(folder: Path) -> Content:
    """query, positive[], negative[]: a record without a negative says nothing and is left out, as mteb does."""
    path = folder / "test.jsonl"
    rows = read_rows(path, {"query": str, "positive": TEXTS, "negative": TEXTS})
    rows = [row for row in rows if row["positive"] and row["negative"]]
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
    """corpus.jsonl (_id, title, text), queries.jsonl (_id, text), qrels/test.tsv; only judged queries are kept."""
    documents, asked = _by_id(folder / "corpus.jsonl"), _by_id(folder / "queries.jsonl")
    corpus = {key: {"title": str(row.get("title") or ""), "text": row["text"]} for key, row in documents.items()}
    queries = {key: row["text"] for key, row in asked.items()}
    qrels, lost = read_qrels(folder / "qrels" / "test.tsv", queries, corpus)
    if lost:
        print(f"Note: {folder.name}: {lost} judgements of queries or documents that are missing left out.")
    return {"corpus": corpus, "queries": {query: queries[query] for query in qrels}, "qrels": qrels, "top_ranked": None}


def _by_id(path: Path) -> dict[str, dict[str, Any]]:
    by_id: dict[str, dict[str, Any]] = {}
    for row in read_rows(path, {"_id": LABEL, "text": str}, empty=True):
        if by_id.setdefault(str(row["_id"]), row) is not row:
            raise UserError(f"{path}: the _id '{row['_id']}' is there twice. Each needs its own.")
    return by_id


KINDS: dict[str, tuple[Callable[[Path], Content], str]] = {  # reader, main score
    "Retrieval": (retrieval, "ndcg_at_10"),
    "Reranking": (reranking, "map_at_1000"),
    "Classification": (classification, "accuracy"),
    "Clustering": (clustering, "v_measure"),
    "PairClassification": (table(sentence1=str, sentence2=str, labels=int), "max_ap"),
    "STS": (table(sentence1=str, sentence2=str, score=NUMBER), "cosine_spearman"),
    "Summarization": (summarization, "cosine_spearman"),
}
KEYS: dict[str, Kind] = {  # of task.json
    **dict.fromkeys(("name", "type", "source", "main_score"), str),
    **{"prompt": PROMPT, "min_score": NUMBER, "max_score": NUMBER},
}
NAME = re.compile(r"[^./\s][^/\n]{0,79}")  # of a task, and so of its files
EMBEDDED = 2048  # documents of a clustering task that are embedded, drawn by mteb's seed: its own choice for v2 tasks


def folder_tasks(root: Path, only: Sequence[str] | None = None) -> list[TaskData]:
    """Read the tasks below `root` (or the one that `root` itself is), by name; `only` names those wanted.

    Raises `UserError` with file and line for what is malformed.
    """
    if not root.is_dir():
        raise UserError(f"There is no folder {root}. Give tasks_dir=<folder of task folders>.")
    folders = [root] if (root / "task.json").is_file() else sorted(p.parent for p in root.glob("*/task.json"))
    if not folders:
        raise UserError(f"No task.json in {root} or one level below. Each task folder needs one (name, type).")
    described: dict[str, tuple[Path, dict[str, Any]]] = {}
    for folder in folders:
        about = _description(folder / "task.json")
        if described.setdefault(about["name"], (folder, about))[0] != folder:
            raise UserError(f"Two folders in {root} call themselves '{about['name']}'. Rename one in its task.json.")
    for name in only or ():
        if name not in described:
            raise UserError(f"There is no task '{name}' in {root}. {nearest(name, described)}")
    return [_task(folder, about) for name, (folder, about) in described.items() if not only or name in only]


def _description(path: Path) -> dict[str, Any]:
    with reading(path, 'Write {"name": ..., "type": ...}.'):
        about = {k: v for k, v in dict(json.loads(path.read_text(encoding="utf-8"))).items() if v is not None}
    for key in ("name", "type"):
        if not about.get(key):
            raise UserError(f'{path}: the key \'{key}\' is missing. Write {{"name": ..., "type": ...}}.')
    for key, kind in KEYS.items():
        if fault := key in about and _fault(about[key], kind, empty=True):
            raise UserError(f"{path}: the key '{key}' {fault}. Mend it.")
    if wrong := [key for key in about if key not in KEYS]:
        raise UserError(f"{path}: there is no key '{wrong[0]}'. {nearest(wrong[0], KEYS)}")
    if about["type"] not in TYPES:
        raise UserError(f"{path}: there is no type '{about['type']}'. {nearest(about['type'], TYPES)}")
    if not NAME.fullmatch(about["name"]):
        raise UserError(f"{path}: the name '{about['name']}' becomes that of a file of scores, and cannot. Change it.")
    return about


def _task(folder: Path, about: dict[str, Any]) -> TaskData:
    kind = about["type"]
    reader, main_score = KINDS[kind]
    content = reader(folder)
    settings: dict[str, Any] = {}
    if kind in ("STS", "Summarization"):  # the ends of the scale; mteb's default is 0 to 5
        settings = {"min_score": about.get("min_score", 0), "max_score": about.get("max_score", 5)}
    if kind == "Clustering":
        embedded = min(EMBEDDED, len(content["test"]["labels"]))
        settings = {
            "max_fraction_of_documents_to_embed": None,  # mteb's default, 4 %, is meant for huge data sets
            "max_document_to_embed": embedded,
            "max_documents_per_cluster": embedded,  # of each bootstrap
        }
    main_score, source = about.get("main_score") or main_score, str(about.get("source") or folder)
    return TaskData(about["name"], kind, main_score, source, content, about.get("prompt"), settings)


def read_rows(path: Path, columns: Mapping[str, Kind], empty: bool = False) -> list[dict[str, Any]]:
    """Read a .jsonl file of objects that have all `columns`. empty: whether a text may be.

    Raises `UserError` naming file, line and column.
    """
    if not path.exists():
        raise UserError(f"There is no {path}. A task folder needs it; docs/data.md has the files of each type.")
    read = []
    for number, row in rows_of(path):
        for column, kind in columns.items():
            fault = _fault(row[column], kind, empty) if column in row else f"is missing; there are {', '.join(row)}"
            if fault:
                raise UserError(f"{path}, line {number}: the column '{column}' {fault}. Mend the line.")
        read.append(row)
    if not read:
        raise UserError(f"{path} is empty. It needs at least one line.")
    return read


def _fault(value: Any, kind: Kind, empty: bool) -> str:
    if isinstance(kind, list):
        faults = [_fault(one, kind[0], empty) for one in value] if isinstance(value, list) else ["must be a list"]
        return next(filter(None, faults), "")
    if not isinstance(value, kind) or (isinstance(value, float) and not isfinite(value)):
        return f"must be {WORDS[kind]}"
    return "is an empty text" if isinstance(value, str) and not value.strip() and not empty else ""


def read_qrels(path: Path, queries: Mapping[str, str], corpus: Mapping[str, Any]) -> tuple[Judgements, int]:
    """Read `query-id corpus-id score` lines under a header, tab-separated; return grades, and how many were left out.

    Left out are judgements whose query or document is missing, and queries that lost their relevant documents so: real
    collections have some. Raises `UserError` where these are more than `MOST_LEFT_OUT` of all.
    """
    qrels: Judgements = {}
    lost, relevant, total = list[int](), set[str](), 0
    for number, query, document, grade in _judgements(path):
        total += 1
        if query in queries and document in corpus:
            qrels.setdefault(query, {})[document] = grade
        else:
            lost.append(number)
            relevant |= {query} if grade > 0 else set()
    if len(lost) > MOST_LEFT_OUT * total:
        raise UserError(
            f"{path}, line {lost[0]}: its query or document is missing, as in {len(lost)} of {total} lines; "
            f"at most {MOST_LEFT_OUT:.0%} may be left out. Mend the files."
        )
    kept = {query: grades for query, grades in qrels.items() if query not in relevant or max(grades.values()) > 0}
    if not any(grade > 0 for grades in kept.values() for grade in grades.values()):
        raise UserError(f"{path} names no relevant document. It needs at least one line with a score above 0.")
    return kept, len(lost)


def _judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Yield line, query, document and grade of each line below the header."""
    need = "query-id, corpus-id and a whole score, tab-separated"
    with reading(path, f"A Retrieval folder needs it: {need}."), path.open(encoding="utf-8", newline="") as lines:
        for number, cells in enumerate(csv.reader(lines, delimiter="\t"), start=1):
            if number == 1 and cells[-1:] == ["score"]:
                continue
            try:
                query, document, grade = cells[0], cells[1], int(cells[2])
            except (IndexError, ValueError) as error:
                raise UserError(f"{path}, line {number}: needs {need}. Mend the line.") from error
            yield number, query, document, grade
