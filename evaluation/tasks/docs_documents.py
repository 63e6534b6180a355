"""Docstrings of one held-out package -> the documents of its tasks, chosen by hash, with their subpackage."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cli.errors import UserError
from corpora.copies import distinct
from corpora.docstrings import Docstring, subpackages

MODULE_SHARE = 10  # documents of one module, so that a query meets neighbours of its own answer
VENDORED = {"externals", "_lib", "extern", "_vendored"}


@dataclass(frozen=True)
class Sizes:
    """Sizes of a package's tasks; the same for all packages of a benchmark."""

    documents: int = 200  # of the retrieval corpus; all other tasks use texts of these documents only
    queries: int = 100  # whose summaries are embedded: of retrieval, reranking and the tasks of pairs
    candidates: int = 10  # documents to rerank for a query, its own among them
    classes: int = 8  # largest subpackages, which are the classes
    class_members: int = 24  # smallest subpackage that makes a class
    train_per_class: int = 16  # classification: texts to draw the few shots from
    body_chars: int = 600  # documents are cut here, at a word
    experiments: int = 5  # classification: draws of 8 shots a class
    bootstraps: int = 10  # clustering: samples that are clustered
    relatives: int = 2  # STS, Summarization: other docstrings of each grade beside a query, at most
    summarized: int = 40  # bodies of Summarization, at most: each costs one new text, the shortened summary


@dataclass(frozen=True)
class Document:
    """One docstring: `summary` asks, `body` answers. `label` is "" where its subpackage is too small for a class."""

    key: str  # first 16 hex of the sha256 of its text: id and order
    module: str
    label: str
    summary: str
    body: str

    @property
    def text(self) -> str:
        """Summary and rest as one text."""
        return f"{self.summary}\n\n{self.body}"


def select(docstrings: Iterable[Docstring], sizes: Sizes) -> list[Document]:
    """Return the documents of a package, ordered by key: equal shares of the largest subpackages, module by module.
    No two summaries and no two bodies are near-copies, so that a query has one answer. Nothing depends on the order of
    `docstrings`. Raises `UserError` where too little is left."""
    usable = _unambiguous(docstrings, sizes.body_chars)
    labels = subpackages([d.module for d in usable])
    usable = [replace(d, label=labels[d.module]) for d in usable]
    count = Counter(d.label for d in usable)
    classes = sorted((c for c in count if count[c] >= sizes.class_members), key=lambda c: (-count[c], c))
    classes = classes[: sizes.classes]
    if len(classes) < 2:
        raise UserError(
            "A package has fewer than two subpackages with enough docstrings. Lower benchmark.class_members."
        )
    share = sizes.documents // len(classes)
    chosen = [d for name in classes for d in _by_module([d for d in usable if d.label == name])[:share]]
    modules = {d.module for d in chosen}
    rest = sorted(set(usable) - set(chosen), key=lambda d: (d.module not in modules, d.key))
    chosen += rest[: sizes.documents - len(chosen)]
    kept = [d if d.label in classes else replace(d, label="") for d in chosen]
    return sorted(kept, key=lambda d: d.key)


def _unambiguous(docstrings: Iterable[Docstring], body_chars: int) -> list[Document]:
    documents = []
    for d in docstrings:
        if d.is_pair and not VENDORED.intersection(d.module.split(".")):
            key = hashlib.sha256(d.text.encode()).hexdigest()[:16]
            documents.append(Document(key, d.module, "", d.summary, cut(d.body, body_chars)))
    documents.sort(key=lambda d: (d.key, d.module))
    documents = [documents[i] for i in distinct([d.body for d in documents])]
    return [documents[i] for i in distinct([d.summary for d in documents])]


def cut(text: str, chars: int) -> str:
    """Return the beginning of `text`, at most `chars` characters, ending with a whole word."""
    return text if len(text) <= chars else re.sub(r"\s+\S*$", "", text[: chars + 1])


def _by_module(members: Sequence[Document]) -> list[Document]:
    """Order documents so that a prefix holds whole groups: ten of a module, ten of the next; last what is left."""
    groups: dict[str, list[Document]] = defaultdict(list)
    for d in members:
        groups[d.module].append(d)
    order = sorted(groups, key=lambda module: hashlib.sha256(module.encode()).hexdigest())
    first = [d for module in order for d in groups[module][:MODULE_SHARE]]
    return first + [d for module in order for d in groups[module][MODULE_SHARE:]]
