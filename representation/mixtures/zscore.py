"""Vectors that are standardised batch by batch, and what follows from which texts share a batch."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from poolers.standardise import Standardise
from representation.mixtures.moee_vectors import Vectors
from representation.mixtures.pair_tasks import PairTask
from representation.mixtures.resampled import once

Places = NDArray[np.int64]
WHOLE = 10**9


@dataclass(frozen=True)
class Batching:
    """`reading`: routing, concat or sum; `alpha`: of the sum; `size`: texts in a batch, 0 for no standardisation,
    `WHOLE` for all texts in one; `orders`: random orders of the texts; one where the order cannot matter."""

    reading: str
    alpha: float
    size: int
    orders: int


@dataclass(frozen=True)
class Harm:
    """Of a score over orders: mean, standard deviation (n - 1), lowest and highest. Of a text's vector (unit length) in
    one order and in the next: the largest difference of an entry, and the mean cosine."""

    mean: float
    spread: float
    low: float
    high: float
    entry: float
    cosine: float


def harm(task: PairTask, parts: Vectors, batching: Batching) -> Harm:
    """Score the task under each order. parts: HS [N, D] and RW [N, sum N_l] of its texts, not standardised."""
    count = len(task.texts)
    orders = range(batching.orders if 0 < batching.size < count else 1)
    cuts = [batches_of(count, batching.size, seed) if batching.size else None for seed in orders]
    found = [vectors_of(parts, cut, batching) for cut in cuts]
    scores = [float(task.score(task.similarities(v), once(len(task.left)))[0]) for v in found]
    apart = list(pairwise(found))
    return Harm(
        mean=float(np.mean(scores)),
        spread=float(np.std(scores, ddof=1)) if apart else 0.0,
        low=min(scores),
        high=max(scores),
        entry=max((float(np.abs(a - b).max()) for a, b in apart), default=0.0),
        cosine=float(np.mean([(a * b).sum(axis=1).mean() for a, b in apart])) if apart else 1.0,
    )


def vectors_of(parts: Vectors, cut: list[Places] | None, batching: Batching) -> NDArray[np.float32]:
    """[N, E] of unit length, the texts at each of `cut`'s places standardised by themselves; None: as they are."""
    hidden, routing = (_standardised(torch.from_numpy(parts[name]), cut) for name in ("HS", "RW"))
    if batching.reading == "sum":
        hidden, routing = F.normalize(hidden, dim=-1), batching.alpha**0.5 * F.normalize(routing, dim=-1)
    joined = routing if batching.reading == "routing" else torch.cat([hidden, routing], dim=1)
    found: NDArray[np.float32] = F.normalize(joined, dim=-1).numpy()
    return found


def _standardised(raw: torch.Tensor, cut: list[Places] | None) -> torch.Tensor:
    if cut is None:
        return raw
    by_batch, found = Standardise(raw.shape[1], "batch"), torch.empty_like(raw)
    for places in cut:
        found[places] = by_batch(raw[places])
    return found


def batches_of(count: int, size: int, seed: int) -> list[Places]:
    """Places of `count` texts in random order, cut into batches; a last text alone joins the batch before it."""
    order = np.random.default_rng(seed).permutation(count)
    cut = [order[i : i + size] for i in range(0, count, size)]
    if len(cut) > 1 and len(cut[-1]) == 1:
        cut[-2:] = [np.concatenate(cut[-2:])]
    return cut
