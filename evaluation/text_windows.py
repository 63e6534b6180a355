"""A stream of batches of texts, cut into windows: each holds its distinct texts once, and where they stand."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Window:
    """`texts` are distinct, in the order of their first occurrence; `rows`: [N] the place in `texts` of each text."""

    texts: list[str]
    rows: np.ndarray


def windows(batches: Iterable[Sequence[str]], most: int) -> Iterator[Window]:
    """Cut `batches` before the text that would be distinct number `most` + 1; a batch is let go when it is read."""
    places: dict[str, int] = {}
    rows: list[int] = []
    for batch in batches:
        for text in batch:
            if len(places) == most and text not in places:
                yield Window(list(places), np.array(rows))
                places, rows = {}, []
            rows.append(places.setdefault(text, len(places)))
    if rows:
        yield Window(list(places), np.array(rows))
