"""`benchmark=docs`: five mteb tasks for each held-out package, from its docstrings, without any download."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from corpora.docstrings import package_versions, read_docstrings
from evaluation.tasks.docs_documents import Document, Sizes, select
from evaluation.tasks.task_data import TaskData
from records.atomic import write_text
from records.fingerprint import of_files, of_value

RULES = (
    *("corpora.cleaning", "corpora.docstrings", "corpora.near_copies"),
    *("evaluation.tasks.docs_documents", "evaluation.tasks.docs"),
)


def cached(key: Any, cache_dir: Path | str, build: Callable[[], list[TaskData]]) -> list[TaskData]:
    """Return what `build` gives, from the file of (`key`, source of the modules that build) where there is one.

    key: a JSON value, all that decides the tasks beside the code.
    """
    path = Path(cache_dir) / "tasks" / f"{of_value([key, _rules()])[:16]}.json"
    if not path.exists():
        write_text(path, json.dumps([asdict(task) for task in build()]))
    return [TaskData(**task) for task in json.loads(path.read_text(encoding="utf-8"))]


@cache
def _rules() -> str:
    """sha256 of the code: an edit there builds the tasks anew, so that no version has to be remembered."""
    return of_files(Path(str(import_module(name).__file__)) for name in RULES)


def docs_tasks(packages: Sequence[str], sizes: Sizes, cache_dir: Path | str = "cache") -> list[TaskData]:
    """Return Retrieval, Reranking, Classification, Clustering and PairClassification of each package, in this order.

    All five use the same documents, so that few texts are encoded; classification reads both halves of each as one.
    Raises `UserError` for a package not installed.
    """
    versions = package_versions(packages)
    tasks = []
    for package in packages:
        key = [package, versions[package], asdict(sizes)]
        tasks += cached(key, cache_dir, partial(_built, package, versions[package], sizes, cache_dir))
    return tasks


def _built(package: str, version: str, sizes: Sizes, cache_dir: Path | str) -> list[TaskData]:
    documents = select(read_docstrings([package], cache_dir), sizes)
    return package_tasks(package, f"docstrings of {package} {version}", documents, sizes)


def package_tasks(package: str, source: str, documents: Sequence[Document], sizes: Sizes) -> list[TaskData]:
    """Return the five tasks of one package."""
    name = f"Docs{package.capitalize()}"
    queries = documents[: sizes.queries]
    near = {d.key: neighbours(d, documents)[: sizes.candidates - 1] for d in queries}
    few = {"n_experiments": sizes.experiments}
    bootstraps = {
        "max_fraction_of_documents_to_embed": None,  # mteb's default would embed 4 % of the documents
        "max_documents_per_cluster": sum(bool(d.label) for d in documents),
        "n_clusters": sizes.bootstraps,
    }
    return [
        TaskData(f"{name}Retrieval", "Retrieval", "ndcg_at_10", source, _retrieval(queries, documents)),
        TaskData(f"{name}Reranking", "Reranking", "map_at_1000", source, _reranking(queries, documents, near)),
        TaskData(
            f"{name}Classification", "Classification", "accuracy", source, _classes(documents, sizes), settings=few
        ),
        TaskData(f"{name}Clustering", "Clustering", "v_measure", source, _clusters(documents), settings=bootstraps),
        TaskData(f"{name}PairClassification", "PairClassification", "max_ap", source, _pairs(queries, near)),
    ]


def neighbours(document: Document, documents: Sequence[Document]) -> list[Document]:
    """Return the other documents, nearest module first; among equally near ones the order is a hash of the pair."""
    path = document.module.split(".")

    def distance(other: Document) -> tuple[int, str]:
        shared = 0
        for ours, theirs in zip(path, other.module.split("."), strict=False):
            if ours != theirs:
                break
            shared += 1
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

    As many test texts a class.
    """
    members: dict[str, list[Document]] = defaultdict(list)
    for d in documents:
        if d.label:
            members[d.label].append(d)
    train = {c: found[: min(sizes.train_per_class, len(found) // 2)] for c, found in members.items()}
    tested = min(len(found) - len(train[c]) for c, found in members.items())
    test = {c: found[len(train[c]) : len(train[c]) + tested] for c, found in members.items()}
    number = {c: i for i, c in enumerate(sorted(members))}
    return {
        split: {
            "text": [d.text for c in sorted(part) for d in part[c]],
            "label": [number[c] for c in sorted(part) for _ in part[c]],
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
