"""The effect of the published standardisation by batch on vectors and scores (a divergence of the published code).

The public code of MoEE (arXiv 2410.10814) subtracts the mean of each batch of texts and divides by its standard
deviation, so a vector depends on which other texts were encoded with it. Everything else here is held fixed.
"""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from analysis.formats import Unit
from analysis.render import Section, Table
from cli.limits import Limit, real
from poolers.shared.standardise import Standardise
from representation.encoders_studied import Studied
from representation.moee.mixtures import HS_AND_RW, mixtures
from representation.moee.pair_tasks import SCORE, PairTask, pair_tasks, size
from representation.sections import each
from representation.texts import Arrays, Texts
from representation.variants import encode, variants_of

Config = dict[str, Any]
Places = NDArray[np.int64]
PLACE = 100
NAME = "batch_zscore"
LIMITS = {
    "batch_zscore.pairs": Limit(8),
    "batch_zscore.batches": Limit(2, each=True),
    "batch_zscore.orders": Limit(2),
    "batch_zscore.alpha": real(0),
}
VARIANTS = ("routing", "concat", "sum")  # hidden alone is not standardised in the published code
WHOLE = 10**9
ENDS = {0: "none", WHOLE: "all texts"}  # sizes of a batch in words


def section(encoders: list[Studied], texts: Texts, settings: Config) -> Section | None:
    """Return the section; None where no encoder is a mixture of experts, or no task is of pairs."""
    keys = settings[NAME]
    experts = mixtures(encoders)
    tasks = pair_tasks(texts.task_set.data.values(), keys["pairs"], settings["texts_seed"])
    if not experts or not tasks:
        return None
    rows = []
    for studied in each(experts, NAME, settings):
        parts = [raw_parts(studied, task) for task in tasks]
        for batch, variant in product((0, *keys["batches"], WHOLE), VARIANTS):
            how = {"variant": variant, "alpha": keys["alpha"], "size": batch, "orders": keys["orders"]}
            harms = [harm(task, raw, **how) for task, raw in zip(tasks, parts, strict=True)]
            means = {key: float(np.mean([of_task[key] for of_task in harms])) for key in harms[0]}
            means["entry"] = max(of_task["entry"] for of_task in harms)
            rows.append({"encoder": studied.label, "variant": variant, "batch": batch, **means})
    frame = pd.DataFrame(rows)
    caption = (
        f"{SCORE}, over {keys['orders']} random orders of the same texts, mean over tasks; {size(tasks)} of "
        f"{texts.benchmark}. entry, cosine: of a text's vector of unit length in one order and in the next, the "
        "largest difference of an entry and the mean cosine."
    )
    shown = frame.assign(batch=[ENDS.get(batch, f"{batch} texts") for batch in frame["batch"]])
    formats = dict.fromkeys(("mean", "spread", "low", "high"), Unit().score)
    table = Table("batch-zscore", "Standardised by batch", caption, shown, formats, left=3)
    return Section(NAME, "The published z-score by batch", [table], frames={NAME: frame})


def raw_parts(studied: Studied, task: PairTask) -> Arrays:
    """Return HS [N, D] and RW [N, sum N_l] of the task's texts, neither standardised nor of unit length."""
    variants = variants_of(studied, HS_AND_RW, standardise="none", normalize=False)
    return encode(variants, studied.encoder(), task.texts)


def harm(task: PairTask, parts: Arrays, variant: str, alpha: float, *, size: int, orders: int) -> dict[str, float]:
    """Score the task under each of `orders` random orders of its texts, or under one where the order cannot matter.

    parts: HS [N, D] and RW [N, sum N_l] of its texts, not standardised. variant: routing, concat or sum; alpha: of the
    sum. size: texts in a batch, 0 for no standardisation, `WHOLE` for all texts in one.
    Of the score over orders: mean, spread (standard deviation, n - 1), low and high. Of a text's vector (unit length)
    in one order and in the next: entry, the largest difference of an entry, and the mean cosine.
    """
    count = len(task.texts)
    cuts = [batches_of(count, size, seed) if size else None for seed in range(orders if 0 < size < count else 1)]
    vectors = [vectors_of(parts, cut, variant, alpha) for cut in cuts]
    scores = [task.score(task.similarities(v)) for v in vectors]
    apart = list(pairwise(vectors))
    return {
        "mean": float(np.mean(scores)),
        "spread": float(np.std(scores, ddof=1)) if apart else 0.0,
        "low": min(scores),
        "high": max(scores),
        "entry": max((float(np.abs(a - b).max()) for a, b in apart), default=0.0),
        "cosine": float(np.mean([(a * b).sum(axis=1).mean() for a, b in apart])) if apart else 1.0,
    }


def vectors_of(parts: Arrays, cut: list[Places] | None, variant: str, alpha: float) -> NDArray[np.float32]:
    """Return [N, E], unit length, the texts at each of `cut`'s places standardised by themselves; None: as they are."""
    hidden, routing = (_standardised(torch.from_numpy(parts[name]), cut) for name in ("HS", "RW"))
    if variant == "sum":
        hidden, routing = F.normalize(hidden, dim=-1), alpha**0.5 * F.normalize(routing, dim=-1)
    joined = routing if variant == "routing" else torch.cat([hidden, routing], dim=1)
    vectors: NDArray[np.float32] = F.normalize(joined, dim=-1).numpy()
    return vectors


def _standardised(raw: torch.Tensor, cut: list[Places] | None) -> torch.Tensor:
    if cut is None:
        return raw
    by_batch, standardised = Standardise(raw.shape[1], "batch"), torch.empty_like(raw)
    for places in cut:
        standardised[places] = by_batch(raw[places])
    return standardised


def batches_of(count: int, size: int, seed: int) -> list[Places]:
    """Return places of `count` texts in random order, cut into batches; a last text alone joins the batch before it."""
    order = np.random.default_rng(seed).permutation(count)
    cut = [order[i : i + size] for i in range(0, count, size)]
    if len(cut) > 1 and len(cut[-1]) == 1:
        cut[-2:] = [np.concatenate(cut[-2:])]
    return cut
