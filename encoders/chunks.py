"""Texts sorted by length into chunks under a token budget, so that little of a forward pass is padding."""

from collections.abc import Sequence

Chunk = list[int]  # indices of texts


def by_token_budget(lengths: Sequence[int], budget: int, most: int | None = None) -> list[Chunk]:
    """Return chunks of text indices, longest texts first; padded size (texts x longest) stays within `budget`.

    A text longer than the budget stands alone. `most` bounds the texts of a chunk. Ties keep the given order, so
    the chunks are a function of the lengths. Longest first: what does not fit into memory fails at once.
    """
    chunks: list[Chunk] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        current = chunks[-1] if chunks else []
        full = not current or (len(current) + 1) * lengths[current[0]] > budget or len(current) == most
        if full:
            chunks.append([i])
        else:
            current.append(i)
    return chunks
