"""The unit of training data: a query, its positive and any number of hard negatives; what makes it of `data=`."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import isfinite, nan
from pkgutil import resolve_name
from typing import Any, ClassVar

from cli.errors import UserError

Config = dict[str, Any]


@dataclass(frozen=True)
class Triple:
    """One training example. `source` names the data set it came from (for batches of one source).

    scores: a teacher's, of the positive first and then of each negative; () where the data have none. labels: of class
    data all those of the query (first the one that its positive has too), of the positive and of each negative; else
    none. grade: of graded pairs how alike query and positive are, higher is more; else None.
    """

    query: str
    positive: str
    negatives: tuple[str, ...] = ()
    source: str = "default"
    instruction: str | None = None  # put before the query; None: the data set's own, if it has one
    scores: tuple[float, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    grade: float | None = None

    @property
    def origin(self) -> str:
        """The source of a mix that the example is of."""
        return self.source.partition("/")[0]

    @property
    def kind(self) -> str:
        """The kind of the example: "pairs", "classes" or "graded"."""
        return "classes" if self.labels else "pairs" if self.grade is None else "graded"


def fingerprint(triples: Iterable[Triple]) -> str:
    """Return the sha256 of the triples, in order, after cleaning: what the manifest calls the data."""
    digest = hashlib.sha256()
    for t in triples:
        numbers = map(repr, t.scores if t.grade is None else (t.grade,))
        labels = (name for of_text in t.labels[:1] + t.labels[2:] for name in of_text)
        for field in (t.query, t.positive, *t.negatives, t.source, t.instruction or "", *labels, *numbers):
            digest.update(field.encode())
            digest.update(b"\x1f")
        digest.update(b"\x1e")
    return digest.hexdigest()


def described(triples: Sequence[Triple]) -> dict[str, Any]:
    """Return what a manifest says of the data: sha256, and how many triples: all, per source, instructed."""
    return {
        "sha256": fingerprint(triples),
        "triples": len(triples),
        "sources": dict(Counter(triple.source for triple in triples).most_common()),
        "instructed": sum(triple.instruction is not None for triple in triples),
    }


def read_triples(data: Config, cache_dir: str) -> list[Triple]:
    """Return the triples of a `data` configuration by the function that `data.reader` names."""
    if "reader" not in data:
        raise UserError(
            f"data={data['name']} holds raw text, and this objective trains on pairs. "
            "Give data=docstrings or data=jsonl."
        )
    return read_once(function_of(data["reader"]), data, cache_dir)


def function_of(name: str) -> Callable:
    """Return the function that "package.module.function" names."""
    return resolve_name(":".join(name.rsplit(".", 1)))  # without the colon it hides what a module fails to import


def read_once(read: Callable, data: Config, cache_dir: str) -> list[Triple]:
    """Return what `read` makes of a `data` configuration; the last two are kept, but for files, which may change."""
    if data.get("path") or "sources" in data:
        return list(read(data, cache_dir))
    return list(_kept(read, json.dumps(data, sort_keys=True), cache_dir))


@lru_cache(maxsize=2)  # the cells of a sweep read the same data, its stages the same text
def _kept(read: Callable, data: str, cache_dir: str) -> tuple[Triple, ...]:
    return tuple(read(json.loads(data), cache_dir))


MISSPELT = 0.9  # similarity from which an unknown key is taken for a misspelt one, not for a column of its own


OTHER_NAMES = {  # of sentence-transformers, FlagEmbedding and Tevatron; read where a record lacks our name
    "query": ("anchor",),
    "positive": ("pos", "positives", "positive_passages"),
    "negative": ("neg", "negatives", "hard_negative", "hard_negatives", "negative_passages"),
}
NUMBERED = re.compile(r"negative_\d+")


class BadRecordError(ValueError):
    """A fault of a record, and its remedy; the caller knows file and line."""


class RecordReader(ABC):
    """Reads the records of one file. required: columns that each must have; columns: our names to the file's
    ({"query": "question", ...}); source: of records without one; reads: columns that are read of the last record."""

    required: ClassVar[tuple[str, ...]]

    def __init__(self, columns: Mapping[str, str], source: str) -> None:
        self.named, self.columns, self.source = columns, dict(columns), source
        self.reads: list[str] = []
        self._checked: KeysView[str] | None = None

    def __call__(self, row: Mapping[str, Any]) -> Iterable[Any]:
        """Return what the record holds: an example, or one for each of its positives. Raises `BadRecordError`."""
        if row.keys() != self._checked:
            self.check_keys(row)
            self._checked = row.keys()
        source = _optional(row, self.columns["source"]) or self.source
        return self.read(row, source, _optional(row, self.columns["instruction"]))

    @abstractmethod
    def read(self, row: Mapping[str, Any], source: str, instruction: str | None) -> Iterable[Any]:
        """Return what a record of the right keys holds. Raises `BadRecordError`."""

    def check_keys(self, keys: Iterable[str]) -> None:
        """Refuse records that lack a required column, or have one that is a misspelt optional one."""
        given = list(keys)
        for ours, name in self.named.items():
            others = OTHER_NAMES.get(ours, ()) if name == ours else ()
            self.columns[ours] = next((n for n in (name, *others) if n in given), name)
        names = set(self.columns.values())
        numbered = [key for key in given if NUMBERED.fullmatch(key)] if self.named.get("negative") == "negative" else []
        self.reads = [key for key in given if key in names or key in numbered]
        for ours in self.required:
            if self.columns[ours] not in given:
                raise BadRecordError(_missing(ours, self.columns[ours], [k for k in given if k not in self.reads]))
        absent = names - {*given, self.columns.get("scores")}  # who trains on scores asks for them
        for key in (key for key in given if key not in self.reads):
            if near := get_close_matches(key, absent, n=1, cutoff=MISSPELT):
                raise BadRecordError(f"has a key '{key}', which is not read. Rename it to '{near[0]}'.")

    def text(self, row: Mapping[str, Any], ours: str) -> str:
        """Return the text of a required column. Raises `BadRecordError`."""
        return _text(row[self.columns[ours]], self.columns[ours])


class TripleMaker(RecordReader):
    """Makes triples, one for each positive; a record may lack the columns negative, source, instruction and scores."""

    required = ("query", "positive")

    def read(self, row: Mapping[str, Any], source: str, instruction: str | None) -> list[Triple]:
        """Return the triples of a record."""
        columns = dict.fromkeys([self.columns["negative"], *filter(NUMBERED.fullmatch, self.reads)])
        negatives = tuple(text for key in columns for text in _texts(row.get(key), key))
        scores = _scores(row.get(self.columns["scores"]), self.columns["scores"], len(negatives))
        query, column = self.text(row, "query"), self.columns["positive"]
        positives = _texts(row[column] or "", column)
        if not positives or (scores and len(positives) > 1):
            raise BadRecordError(f"has {len(positives)} texts as '{column}'. Give one, or without scores some.")
        return [Triple(query, positive, negatives, source, instruction, scores) for positive in positives]


class GradedReader(RecordReader):
    """Makes graded pairs; a score is a number, or text that says one."""

    required = ("first", "second", "score")

    def read(self, row: Mapping[str, Any], source: str, instruction: str | None) -> list[Triple]:
        """Return the pair of a record."""
        value, grade = row[self.columns["score"]], nan
        with suppress(TypeError, ValueError):
            grade = nan if isinstance(value, bool) else float(value)
        if not isfinite(grade):
            raise BadRecordError(f"has {str(value)[:30]!r} as '{self.columns['score']}'. It must be a finite number.")
        return [Triple(self.text(row, "first"), self.text(row, "second"), (), source, instruction, grade=grade)]


def _text(value: Any, column: str, wanted: str = "a text") -> str:
    if not isinstance(value, str):
        raise BadRecordError(f"has {type(value).__name__} {str(value)[:30]!r} as '{column}'. It must be {wanted}.")
    if not value.strip():
        raise BadRecordError(f"has no text as '{column}'. Remove the record, or give it a text.")
    return value


def _texts(value: Any, column: str) -> tuple[str, ...]:
    """The texts of a cell: one or a list; a passage {title, text} is one, as Tevatron joins them."""
    if isinstance(value, list):
        return tuple(text for i, part in enumerate(value) for text in _texts(part, f"{column}[{i}]"))
    if isinstance(value, dict) and "text" in value:
        value = f"{value.get('title') or ''} {value['text']}".strip()
    return () if value is None else (_text(value, column, "a text or a list of texts"),)


def _optional(row: Mapping[str, Any], column: str) -> str | None:
    value = row.get(column)
    return None if value is None else _text(value, column)


def _scores(value: Any, column: str, negatives: int) -> tuple[float, ...]:
    if value is None:
        return ()
    scores = value
    if isinstance(value, str):  # a cell of a CSV file
        with suppress(ValueError):
            scores = json.loads(value)
    if not isinstance(scores, list) or not all(type(s) in (int, float) and isfinite(s) for s in scores):
        wanted = "It must be a list of finite numbers, or not a teacher's: say data.columns.scores=<another name>"
        raise BadRecordError(f"has {str(value)[:30]!r} as '{column}'. {wanted}.")
    if len(scores) != 1 + negatives:
        raise BadRecordError(f"has {len(scores)} '{column}' and {negatives} negatives. Give the positive's first.")
    return tuple(map(float, scores))


def _missing(ours: str, column: str, others: list[str]) -> str:
    if near := get_close_matches(column, others, n=1, cutoff=0.5):
        return f"has no '{column}'; nearest is '{near[0]}'. Rename it, or say data.columns.{ours}={near[0]}."
    listing = ", ".join(repr(k[:30]) for k in others[:6]) or "nothing else"
    return f"has no '{column}'; it has {listing}. Name the right column with data.columns.{ours}=<name>."
