"""`benchmark=docstrings`: seven mteb tasks for each held-out package, from its docstrings, without any download.

Nobody judged a pair of STS and Summarization: its grade is how near two docstrings stand.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cli.errors import UserError
from corpora.copies import first_words, word_count
from corpora.docstrings import package_sources, package_version, read_docstrings
from evaluation.tasks.docs_documents import Document, Sizes, select
from evaluation.tasks.task_data import TaskData
from records.files import alone_in, of_files, of_value, write_text

SUBPACKAGE, MODULE, OWN = 1, 2, 3  # of STS; 0: another subpackage
SHORTENED, WHOLE = 3, 4  # of Summarization, above the same 0, 1 and 2 for other docstrings' summaries
Near = tuple[Document, list[tuple[int, Document]]]  # a document; others with their grades
HERE = Path(__file__).resolve().parent
CODE = (HERE, HERE.parent.parent / "corpora")  # an edit there builds the tasks anew


def cached(key: Any, cache_dir: Path | str, build: Callable[[], list[TaskData]]) -> list[TaskData]:
    """Return what `build` gives, from the file of (`key`, code that builds) where there is one.

    key: a JSON value, all that decides the tasks beside the code.
    """
    code = of_files(file for folder in CODE for file in folder.glob("*.py"))
    path = Path(cache_dir) / "tasks" / f"{of_value([key, code])[:16]}.json"
    if not path.exists():
        with alone_in(path.parent, wait=True):  # runs that are scored side by side build once
            if not path.exists():
                write_text(path, json.dumps([vars(task) for task in build()]))
    return [TaskData(**task) for task in json.loads(path.read_text(encoding="utf-8"))]


def docs_tasks(packages: Sequence[str], sizes: Sizes, cache_dir: Path | str = "cache") -> list[TaskData]:
    """Return the tasks of each package, one of each of `TYPES`, in this order.

    All use the same documents, so that few texts are encoded; classification reads both halves of each as one.
    Raises `UserError` for a package not installed.
    """
    tasks = []
    for package in packages:

        def build(package: str = package) -> list[TaskData]:
            documents = select(read_docstrings([package], cache_dir), sizes)
            return package_tasks(package, f"docstrings of {package} {package_version(package)}", documents, sizes)

        tasks += cached([package, package_sources([package]), asdict(sizes)], cache_dir, build)
    return tasks


def package_tasks(package: str, source: str, documents: Sequence[Document], sizes: Sizes) -> list[TaskData]:
    """Return the tasks of one package, in the order of `TYPES`."""

    def task(kind: str, main_score: str, content: dict, **settings: Any) -> TaskData:
        return TaskData(f"Docs{package.capitalize()}{kind}", kind, main_score, source, content, settings=settings)

    queries = documents[: sizes.queries]
    near = {d.key: neighbours(d, documents)[: sizes.candidates - 1] for d in queries}
    bootstraps = {
        "max_fraction_of_documents_to_embed": None,  # mteb's default would embed 4 % of the documents
        "max_documents_per_cluster": sum(bool(d.label) for d in documents),
        "n_clusters": sizes.bootstraps,
    }
    return [
        task("Retrieval", "ndcg_at_10", _retrieval(queries, documents)),
        task("Reranking", "map_at_1000", _reranking(queries, documents, near)),
        task("Classification", "accuracy", _classes(documents, sizes), n_experiments=sizes.experiments),
        task("Clustering", "v_measure", _clusters(documents), **bootstraps),
        task("PairClassification", "max_ap", _pairs(queries, near)),
        task("STS", "cosine_spearman", similarity(queries, documents, sizes), min_score=0, max_score=OWN),
        task("Summarization", "cosine_spearman", summarization(queries, sizes), min_score=0, max_score=WHOLE),
    ]


def neighbours(document: Document, documents: Sequence[Document]) -> list[Document]:
    """Return the other documents, nearest module first; among equally near ones the order is a hash of the pair."""
    path = document.module.split(".")

    def distance(other: Document) -> tuple[int, str]:
        theirs = other.module.split(".")
        parting = (i for i, (a, b) in enumerate(zip(path, theirs, strict=False)) if a != b)
        shared = next(parting, min(len(path), len(theirs)))
        apart = 0 if other.module == document.module else 1 + len(path) - shared
        return apart, hashlib.sha256((document.key + other.key).encode()).hexdigest()

    return sorted((d for d in documents if d.key != document.key), key=distance)


def _retrieval(queries: Sequence[Document], documents: Sequence[Document]) -> dict:
    return {
        "corpus": {d.key: {"title": "", "text": d.body} for d in documents},
        "queries": {f"q{d.key}": d.summary for d in queries},
        "qrels": {f"q{d.key}": {d.key: 1} for d in queries},
        "top_ranked": None,
    }


def _reranking(queries: Sequence[Document], documents: Sequence[Document], near: dict[str, list[Document]]) -> dict:
    ranked = {f"q{d.key}": sorted([d.key, *(other.key for other in near[d.key])]) for d in queries}
    used = {key for keys in ranked.values() for key in keys}
    return _retrieval(queries, [d for d in documents if d.key in used]) | {"top_ranked": ranked}


def _classes(documents: Sequence[Document], sizes: Sizes) -> dict:
    """Whole docstring -> subpackage: many a summary ("Fisher information matrix of model") fits several of them.
    As many test texts a class."""
    members: dict[str, list[Document]] = defaultdict(list)
    for d in documents:
        if d.label:
            members[d.label].append(d)
    train = {c: of_class[: min(sizes.train_per_class, len(of_class) // 2)] for c, of_class in members.items()}
    tested = min(len(of_class) - len(train[c]) for c, of_class in members.items())
    test = {c: of_class[len(train[c]) : len(train[c]) + tested] for c, of_class in members.items()}
    number = {c: i for i, c in enumerate(sorted(members))}
    return {
        split: {
            "text": [d.text for c in number for d in part[c]],
            "label": [number[c] for c in number for _ in part[c]],
        }
        for split, part in (("train", train), ("test", test))
    }


def _clusters(documents: Sequence[Document]) -> dict:
    labelled = [d for d in documents if d.label]
    return {"test": {"sentences": [d.body for d in labelled], "labels": [d.label for d in labelled]}}


def _pairs(queries: Sequence[Document], near: dict[str, list[Document]]) -> dict:
    rows = [(d.summary, d.body, 1) for d in queries] + [(d.summary, near[d.key][0].body, 0) for d in queries]
    left, right, labels = (list(column) for column in zip(*rows, strict=True))
    return {"test": {"sentence1": left, "sentence2": right, "labels": labels}}


def graded(queries: Sequence[Document], documents: Sequence[Document], each: int) -> list[Near]:
    """Return `queries` with up to `each` of the other `documents` of each grade: same module, same subpackage, another.
    A query without a document of each grade is left out, so that no grade has summaries of its own. Which of them are
    taken is decided by a hash of the pair. Raises `UserError` where no query is left."""
    neighbours = [(d, _others(d, documents, each)) for d in queries if d.label]
    whole = [(d, others) for d, others in neighbours if len({grade for grade, _ in others}) == OWN]
    if not whole:
        raise UserError(
            "A package has no docstring with others of its module and of its subpackage beside it. "
            "Raise benchmark.documents and benchmark.queries."
        )
    return whole


def _others(document: Document, documents: Sequence[Document], each: int) -> list[tuple[int, Document]]:
    by_grade: list[list[Document]] = [[], [], []]
    for other in sorted(documents, key=lambda o: hashlib.sha256(f"{document.key}{o.key}".encode()).digest()):
        if other.key != document.key:
            same = other.module == document.module
            by_grade[MODULE if same else SUBPACKAGE if other.label == document.label else 0].append(other)
    return [(grade, other) for grade, of_grade in enumerate(by_grade) for other in of_grade[:each]]


def similarity(queries: Sequence[Document], documents: Sequence[Document], sizes: Sizes) -> dict:
    """Return the pairs of STS: a summary with its own body, and with bodies of each grade below."""
    rows = [
        (d.summary, other.body, float(grade))
        for d, others in graded(queries, documents, sizes.relatives)
        for grade, other in [(OWN, d), *others]
    ]
    left, right, scores = (list(column) for column in zip(*rows, strict=True))
    return {"test": {"sentence1": left, "sentence2": right, "score": scores}}


def summarization(queries: Sequence[Document], sizes: Sizes) -> dict:
    """Return the rows of Summarization: a body, and summaries that fit it better or worse.
    The body stands where mteb has people's summaries, since mteb compares with these and never embeds the text. The
    others' summaries are those of `queries`, which other tasks embed too."""
    long = [d for d in queries if word_count(d.summary) >= 2]
    columns: dict[str, list] = {n: [] for n in ("text", "human_summaries", "machine_summaries", "relevance")}
    for d, others in graded(long, queries, sizes.relatives)[: sizes.summarized]:
        summaries = [(WHOLE, d.summary), (SHORTENED, shortened(d.summary)), *((g, o.summary) for g, o in others)]
        columns["text"].append(d.body)
        columns["human_summaries"].append([d.body])
        columns["machine_summaries"].append([summary for _, summary in summaries])
        columns["relevance"].append([grade for grade, _ in summaries])
    return {"test": columns}


def shortened(summary: str) -> str:
    """Return the first half of a summary's words."""
    return first_words(summary, word_count(summary) // 2)
