"""Chunks under a token budget that is halved when memory runs out, and stays so."""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch

from cli.errors import UserError

Chunk = list[int]  # indices of texts


def by_token_budget(lengths: Sequence[int], budget: int, most: int | None = None, padded: bool = True) -> list[Chunk]:
    """Return chunks of text indices, longest texts first; their size stays within `budget`.

    Size: texts x longest, or the real tokens where the decoder takes no padding (`padded` False). A text longer than
    the budget stands alone. `most` bounds the texts of a chunk. The chunks are a function of the lengths.
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


T = TypeVar("T")
OF_THE_CPU = "DefaultCPUAllocator"  # torch raises a bare RuntimeError where host memory runs out


class BackOff:
    """Runs texts chunk by chunk. `budget`: tokens of a chunk; smaller once a chunk did not fit into memory.

    padded: whether padding counts (see `by_token_budget`).
    """

    def __init__(self, budget: int, padded: bool = True) -> None:
        self.budget, self.padded = budget, padded

    def run(self, lengths: Sequence[int], compute: Callable[[Chunk], T]) -> Iterator[tuple[Chunk, T]]:
        """Yield each chunk of text indices with what `compute` makes of it, longest texts first.

        A chunk that does not fit is cut again with the texts after it, under half of its own size.
        Raises `UserError` where a single text does not fit.
        """
        chunks = by_token_budget(lengths, self.budget, padded=self.padded)
        while chunks:
            chunk = chunks[0]
            result = unless_out_of_memory(partial(compute, chunk))
            if result is not None:
                del chunks[0]
                yield chunk, result[0]
                continue
            self._halve([lengths[i] for i in chunk])
            rest = [i for c in chunks for i in c]
            again = by_token_budget([lengths[i] for i in rest], self.budget, padded=self.padded)
            chunks = [[rest[k] for k in c] for c in again]

    def _halve(self, lengths: Sequence[int]) -> None:
        """Hand freed blocks back, so that smaller ones find room. Raises `UserError` where it was a single text."""
        texts, longest = len(lengths), max(lengths)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if texts == 1:
            raise UserError(
                f"Out of memory on a single text of {longest} tokens. Lower max_length, take a smaller model or a "
                "precision of fewer bits (precision=bf16), or free the memory that other programs hold."
            )
        self.budget = max(1, (texts * longest if self.padded else sum(lengths)) // 2)
        what = f"Out of memory on {texts} texts of up to {longest} tokens"
        print(f"{what}; going on with token_budget={self.budget}.", file=sys.stderr, flush=True)


def unless_out_of_memory(compute: Callable[[], T]) -> tuple[T] | None:
    """Return the result, in a tuple; None where memory ran out. The error, whose frames hold tensors, ends here."""
    try:
        return (compute(),)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, on a GPU or on the host."""
    return isinstance(error, torch.OutOfMemoryError) or OF_THE_CPU in str(error)
