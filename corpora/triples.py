"""The unit of contrastive data: a query, its positive, and any number of hard negatives."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Triple:
    """One training example. `source` names the data set it came from (for batches of one source)."""

    query: str
    positive: str
    negatives: tuple[str, ...] = ()
    source: str = "default"
    instruction: str | None = None  # put before the query; None: the data set's own, if it has one


def fingerprint(triples: Iterable[Triple]) -> str:
    """Return the sha256 of the triples, in order, after cleaning: what the manifest calls the data."""
    digest = hashlib.sha256()
    for t in triples:
        for field in (t.query, t.positive, *t.negatives, t.source, t.instruction or ""):
            digest.update(field.encode())
            digest.update(b"\x1f")
        digest.update(b"\x1e")
    return digest.hexdigest()
