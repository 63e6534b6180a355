"""STS and Summarization of one package: a summary and a body, graded by how near their docstrings stand.

Nobody judged a pair: the grade is structure alone.
"""

import hashlib
from collections.abc import Sequence

from cli.errors import UserError
from corpora.words import first_words, word_count
from evaluation.tasks.docs_documents import Document, Sizes

SUBPACKAGE, MODULE, OWN = 1, 2, 3  # of STS; 0: another subpackage
SHORTENED, WHOLE = 3, 4  # of Summarization, above the same 0, 1 and 2 for other docstrings' summaries
Near = tuple[Document, list[tuple[int, Document]]]  # a document; others with their grades


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
