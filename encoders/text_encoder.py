"""Texts in, vectors out: each distinct text once, longest first, in chunks that are halved when memory runs out."""

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from cli.errors import UserError
from encoders.attention.switch import is_unpadded
from encoders.encoder import Encoder
from encoders.identity import execution
from encoders.tokens import Batch, TextTokenizer, Tokens

WINDOW = 32_768  # texts tokenised and sorted at a time, so that a corpus of millions is not held twice
USUAL = 16_384  # tokens of a chunk where token_budget and the option of model= say none
T = TypeVar("T")
Chunk = list[int]  # indices of texts


def usual_budget(config: Mapping[str, Any]) -> int:
    """Return the tokens of a chunk: `token_budget`; where that is null, what the option of `model` says, or `USUAL`."""
    return int(config["token_budget"] or config["model"].get("token_budget") or USUAL)


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


OUT_OF_MEMORY = "DefaultCPUAllocator", "CUDA error: out of memory", "ALLOC_FAILED", "[CUDA]: out of memory"


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
            try:
                result = compute(chunk)
            except RuntimeError as error:  # it ends here, and with it its frames, which hold tensors
                if not is_out_of_memory(error):
                    raise
            else:
                del chunks[0]
                yield chunk, result
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


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; on the host, or outside torch's allocator, a bare RuntimeError says so."""
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


@dataclass
class Meter:
    """The cost of encoding so far; texts and tokens count what was really run, not repeats."""

    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0


class TextEncoder:
    """An encoder with its tokenizer. Same `fingerprint` (weights and settings), same vectors."""

    def __init__(self, encoder: Encoder, tokenizer: TextTokenizer, fingerprint: str, token_budget: int) -> None:
        self.encoder, self.tokenizer, self.fingerprint = encoder, tokenizer, fingerprint
        self.embedding_dim, self.max_length = encoder.pooler.embedding_dim, tokenizer.max_length
        self.back_off = BackOff(token_budget, padded=not is_unpadded(encoder.backbone))
        self.device = next(encoder.backbone.parameters()).device
        self.settings = {
            "compute": str(encoder.compute).removeprefix("torch."),
            "weights": str(encoder.backbone.dtype).removeprefix("torch."),
            **execution(encoder.backbone),
        }
        self.meter = Meter()

    def encode(self, texts: Sequence[str], instruction: str = "") -> np.ndarray:
        """Return [N, E] float32, in the order of `texts`. Raises `UserError` for an empty text."""
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        vectors = np.empty((len(place), self.embedding_dim), dtype=np.float32)
        for indices, part in self.parts(list(place), instruction):
            vectors[indices] = part
        return vectors[[place[t] for t in texts]]

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield (indices of texts, their [n, E] float32) chunk by chunk, longest first; `texts` are distinct.

        Chunks are cut by a rule that looks only ahead, so that stopped work goes on with the very same numbers.
        """
        return self.run(texts, instruction, lambda batch: self.encoder(batch).cpu().numpy())

    def run(self, texts: Sequence[str], instruction: str, compute: Callable[[Batch], T]) -> Iterator[tuple[Chunk, T]]:
        """As `parts`, with `compute` in place of this encoder's own vectors: several variants of one forward pass."""
        training = self.encoder.training
        self.encoder.eval()  # dropout off, also where a run in training is validated
        try:
            for offset in range(0, len(texts), WINDOW):
                with self._timed():
                    rows = self.tokenizer(texts[offset : offset + WINDOW], instruction)
                for chunk, result in self.back_off.run([len(r) for r in rows], partial(self._computed, compute, rows)):
                    self.meter.texts += len(chunk)
                    self.meter.tokens += sum(len(rows[i]) for i in chunk)
                    yield [offset + i for i in chunk], result
        finally:
            self.encoder.train(training)

    def _computed(self, compute: Callable[[Batch], T], rows: Sequence[Tokens], chunk: Chunk) -> T:
        with self._timed(), torch.inference_mode():
            return compute(self.tokenizer.batch([rows[i] for i in chunk]).to(self.device))

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.meter.seconds += time.perf_counter() - start


REMEDY = "Give precision=fp32; what diverged in training is trained again with a smaller learning rate."
OF_HALF = "Its products run in float16, which ends at 65,504: give evaluation.autocast=null, or bf16."


def refuse_nonfinite(
    texts: Sequence[str], vectors: np.ndarray, whose: str = "The model", remedy: str = REMEDY, settings: Any = None
) -> None:
    """Raise `UserError`, naming the first text, where a vector is not finite: a score of it would be a number.

    vectors: [N, E] of `texts`. settings: `TextEncoder.settings`; products in float16 may be the cause.
    """
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        many, why = f"{bad.size} of {len(texts)} texts", remedy
        if (settings or {}).get("compute") == "float16":
            why = OF_HALF
        raise UserError(f"{whose} gives NaN or infinity for {many}, the first is {texts[bad[0]][:80]!r}. {why}")
