"""The unit of contrastive data: a query, its positive, and any number of hard negatives."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


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


def described(triples: Sequence[Triple]) -> dict[str, Any]:
    """Return what a manifest says of the data: sha256, and how many triples: all, per source, instructed."""
    return {
        "sha256": fingerprint(triples),
        "triples": len(triples),
        "sources": dict(Counter(triple.source for triple in triples).most_common()),
        "instructed": sum(triple.instruction is not None for triple in triples),
    }
