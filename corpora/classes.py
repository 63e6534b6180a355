"""Class data: a text, another text of its label as positive, texts of other labels as hard negatives."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from cli.errors import UserError
from corpora.docstring_pairs import following, placed, training_pairs
from corpora.files import records
from corpora.triples import BadRecordError, RecordReader, Triple

Config = dict[str, Any]


@dataclass(frozen=True)
class Labelled:
    """A text and its label; labels of two sources are never the same."""

    text: str
    label: str
    source: str
    instruction: str | None = None

    @property
    def name(self) -> str:
        """The label with its source."""
        return f"{self.source}/{self.label}"


class LabelledReader(RecordReader):
    """Reads labelled texts; a label is a text or a whole number."""

    required = ("text", "label")

    def read(self, row: Mapping[str, Any], source: str, instruction: str | None) -> list[Labelled]:
        """Return the labelled text of a record."""
        label, column = row[self.columns["label"]], self.columns["label"]
        if not isinstance(label, str | int) or not str(label).strip():
            raise BadRecordError(f"has {str(label)[:30]!r} as '{column}'. It must be a text or a whole number.")
        return [Labelled(self.text(row, "text"), str(label).strip(), source, instruction)]


def file_classes(data: Config, cache_dir: str) -> list[Triple]:
    """`data=classes`: return the examples of the records (text, label) of all files of `data.path`."""
    return _examples(list(records(data, LabelledReader)), data)


def docstring_classes(data: Config, cache_dir: str) -> list[Triple]:
    """`data=docstring_classes`: return the examples of the training side's docstrings by subpackage or package."""
    if data["level"] not in ("subpackage", "package"):
        raise UserError(f"data.level={data['level']} must be one of subpackage, package.")
    whole, found = data["level"] == "package", placed(training_pairs(data, cache_dir))
    return _examples([Labelled(d.text, d.package if whole else label, d.package) for d, _, label in found], data)


def _examples(texts: Sequence[Labelled], data: Config) -> list[Triple]:
    triples = class_triples(texts, data["negatives"], data["smallest"])
    if len({t.labels[0][0] for t in triples}) < 2:
        fault = f"data={data['name']} has fewer than two labels of data.smallest={data['smallest']} texts or more"
        raise UserError(f"{fault}. Lower data.smallest, or give more texts.")
    return triples


def class_triples(texts: Sequence[Labelled], negatives: int, smallest: int = 2) -> list[Triple]:
    """Return (text, another of its label, at most `negatives` of other labels) for each text of a label with at least
    `smallest` texts, and two; in the order of `texts`.

    The order of the texts' sha256 chooses: the positive is the next text of the label, cyclically; the negatives are
    the next ones in the source, or in all data where the source has one label, that share no label with the text.
    """
    order = sorted(dict.fromkeys(texts), key=lambda t: (hashlib.sha256(t.text.encode()).hexdigest(), t.name))
    count = Counter(t.name for t in order)
    kept = [t for t in order if count[t.name] >= max(2, smallest)]
    names: dict[str, dict[str, None]] = defaultdict(dict)  # all labels of each text
    for text in order:
        names[text.text][text.name] = None
    labels_of = Counter(source for source, _ in {(t.source, t.name) for t in kept})
    in_label, in_source = following(kept, lambda t: t.name), following(kept, lambda t: t.source)
    anywhere = following(kept, lambda t: None)
    triples = {}
    for text in kept:
        positive = next(in_label(text))
        pool = in_source(text) if labels_of[text.source] > 1 else anywhere(text)
        mine = {text.name: None} | names[text.text]
        hard = tuple(islice((t.text for t in pool if mine.keys().isdisjoint(names[t.text])), negatives))
        labels = tuple(map(tuple, (mine, *(names[other] for other in (positive.text, *hard)))))
        triples[text] = Triple(text.text, positive.text, hard, text.source, text.instruction, labels=labels)
    return [triples[t] for t in dict.fromkeys(texts) if t in triples]
