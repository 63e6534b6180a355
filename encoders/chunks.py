"""Texts sorted by length into chunks under a token budget, so that little of a forward pass is padding."""

from collections.abc import Sequence

Chunk = list[int]  # indices of texts


def by_token_budget(lengths: Sequence[int], budget: int, most: int | None = None, padded: bool = True) -> list[Chunk]:
    """Return chunks of text indices, longest texts first; their size stays within `budget`.

    Size: texts x longest, or the real tokens where the decoder takes no padding (`padded` False). A text longer than
    the budget stands alone. `most` bounds the texts of a chunk. Ties keep the given order, so the chunks are a function
    of the lengths. Longest first: what does not fit into memory fails at once.
    """
    chunks: list[Chunk] = []
    tokens = 0  # real ones of the last chunk
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        current = chunks[-1] if chunks else []
        size = (len(current) + 1) * lengths[current[0]] if current and padded else tokens + lengths[i]
        if not current or size > budget or len(current) == most:
            chunks.append([i])
            tokens = 0
        else:
            current.append(i)
        tokens += lengths[i]
    return chunks
