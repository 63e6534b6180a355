"""Floating-point operations of forward passes, counted from shapes: matrix products and attention."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from encoders.attention.layout import one_text_each
from encoders.encoder import Encoder
from encoders.tokens import Batch
from poolers.shared.base import TEXT

STEP = 8  # tokens between probes
REAL_BYTES = 2**28  # parameters up to this size get memory: counting is then four times as fast, and the same


@dataclass(frozen=True)
class Work:
    """Forward passes done so far, as the sums that `Polynomial` needs.

    chunks: passes; texts; tokens; squares: the sum over texts of the length squared. Padding counts where it is run.
    """

    chunks: int = 0
    texts: int = 0
    tokens: int = 0
    squares: int = 0

    def plus(self, chunks: Sequence[Sequence[int]]) -> "Work":
        """Add chunks, each the lengths of its texts as they are run."""
        texts, tokens = self.texts + sum(map(len, chunks)), self.tokens + sum(map(sum, chunks))
        squares = self.squares + sum(n * n for lengths in chunks for n in lengths)
        return Work(self.chunks + len(chunks), texts, tokens, squares)


@dataclass(frozen=True)
class Polynomial:
    """FLOPs of b texts of t tokens: once + b (text + token t + square t^2). Attention makes the square."""

    once: float
    text: float
    token: float
    square: float

    def __call__(self, work: "Work") -> float:
        """FLOPs of `work`."""
        return self.once * work.chunks + self.text * work.texts + self.token * work.tokens + self.square * work.squares


def polynomials(encoder: Encoder, count: Callable[[Batch], tuple[int, ...]]) -> list[Polynomial]:
    """Return the polynomial of each number that `count` gives for a batch, by the counts of a few tokens.

    encoder: on the meta device, with the eager kernel, which stands for all, since they compute the same products. Its
    weights become zeros, or tensors without memory where they would need more than `REAL_BYTES`. A multiplication with
    its addition is two operations. Norms and activations are not counted.
    """
    encoder.eval()  # dropout costs no products, and would draw from the global generator
    memory: AbstractContextManager[Any] = nullcontext()
    if sum(p.numel() * p.element_size() for p in encoder.parameters()) > REAL_BYTES:
        memory = FakeTensorMode(allow_non_fake_inputs=True)
        encoder.backbone.bfloat16()  # as many products; without memory, those of experts know no float32
    with memory:
        encoder.to_empty(device=torch.device("cpu"))
        for tensor in (*encoder.parameters(), *encoder.buffers()):
            tensor.detach().zero_()
        shapes = ((1, STEP), (1, 2 * STEP), (1, 3 * STEP), (2, STEP))
        probes = [count(one_text_each(torch.full(shape, TEXT))) for shape in shapes]
    return [_fitted(*counts) for counts in zip(*probes, strict=True)]


def _product(a: Sequence[int], b: Sequence[int], *_: Any, **__: Any) -> int:
    """FLOPs of [m, k] x [k, n], or of a mixture's: [rows, k] x [experts, k, n], by expert [m, rows] x [rows, n]."""
    return 2 * prod(a) * b[-1]


# on top of what torch's counter knows; addmm_ adds in place to its first argument
COUNTED = {torch.ops.aten._grouped_mm: _product, torch.ops.aten.addmm_: lambda _, *shapes, **k: _product(*shapes, **k)}


def flop_counter() -> FlopCounterMode:
    """torch's counter, with the products that it does not know."""
    return FlopCounterMode(display=False, custom_mapping=COUNTED)


def _fitted(one: int, two: int, three: int, pair: int) -> Polynomial:
    """The polynomial through the counts of one text of STEP, 2 STEP, 3 STEP tokens, and of two texts of STEP."""
    square = (three - 2 * two + one) / (2 * STEP**2)
    token = (two - one) / STEP - 3 * STEP * square
    once = 2 * one - pair
    return Polynomial(once, one - once - token * STEP - square * STEP**2, token, square)
