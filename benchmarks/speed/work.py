"""The texts that speed is measured on: batches of (query, positive, negative) of docstrings and of real pairs."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.docstrings import read_docstrings
from corpora.readers import read_triples
from corpora.triples import Triple
from encoders.tokens import TextTokenizer

PAIRS = Path(__file__).resolve().parents[3] / "shared" / "data" / "pairs"
SOURCES = ("docstrings", "pairs")
TEXTS = 48  # of `mixed_docstrings`


def missing(source: str) -> str | None:
    """Why `source` cannot be measured here; None where it can."""
    if source == "pairs" and not sorted(PAIRS.glob("*.jsonl.gz")):
        return "there is no ../shared/data/pairs/*.jsonl.gz beside the checkout"
    return None


def batches(source: str, size: int, count: int, seed: int = 0) -> list[list[Triple]]:
    """Return `count` batches of `size` triples with one hard negative each, drawn without replacement.

    No text occurs twice in a batch: there, leaving out repeats and masking false negatives change nothing, so that
    every trainer computes the same loss. Raises `UserError` where `source` holds too few.
    """
    pool = _triples(source)
    full, chosen, seen = list[list[Triple]](), list[Triple](), set[str]()
    for i in np.random.default_rng(seed).permutation(len(pool)):
        texts = set(texts_of([pool[i]]))
        if len(texts) == 3 and seen.isdisjoint(texts):
            chosen.append(pool[i])
            seen |= texts
        if len(chosen) == size:
            full.append(chosen)
            chosen, seen = [], set()
        if len(full) == count:
            return full
    raise UserError(f"{source} holds {len(full)} batches of {size}, not {count}. Lower the batch or the rounds.")


def texts_of(batch: Sequence[Triple]) -> list[str]:
    """Queries, then positives, then negatives."""
    return [*(t.query for t in batch), *(t.positive for t in batch), *(t.negatives[0] for t in batch)]


def described(tokenizer: TextTokenizer, batch: Sequence[Triple]) -> str:
    """Real tokens of a batch, and how many places three padded forward passes have for them."""
    n = len(batch)
    lengths = np.array([len(row) for row in tokenizer(texts_of(batch))]).reshape(3, n)
    padded = int((lengths.max(axis=1) * n).sum())
    return (
        f"{lengths.sum():,} real tokens ({lengths.mean():.0f} a text, median {np.median(lengths):.0f}, "
        f"longest {lengths.max()}), {padded / lengths.sum():.2f} places a token in three padded passes"
    )


def mixed_docstrings() -> list[str]:
    """48 summaries and docstrings of polars, in turn: of many lengths, so that a batch of them has padding."""
    docstrings = read_docstrings(["polars"])
    chosen = docstrings[:: max(1, len(docstrings) // TEXTS)][:TEXTS]
    return [d.text if k % 2 else d.summary for k, d in enumerate(chosen)]


@cache
def _triples(source: str) -> list[Triple]:
    words = ["data=docstrings"] if source == "docstrings" else ["data=jsonl", f"data.path='{PAIRS}/*.jsonl.gz'"]
    cfg = plain(composed("train", words))
    return [t for t in read_triples(cfg["data"], cfg["cache_dir"]) if t.negatives and _ordinary(t)]


def _ordinary(triple: Triple) -> bool:
    """Return whether no text spells a special token: trainers treat one differently."""
    return not any("<|" in text for text in texts_of([triple]))
