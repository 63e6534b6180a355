"""What the published standardisation by batch does to vectors and scores (docs/reference_divergences.md, M1).

The public code of MoEE (arXiv 2410.10814) subtracts the mean of each batch of texts and divides by its standard
deviation, so a vector depends on which other texts were encoded with it. Everything else here is held fixed.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.formats import score
from analysis.tables.grid import Cell, Grid
from records.limits import Limit, real
from representation.answer import Answer
from representation.moee_vectors import Vectors, encode, mixtures, readings_of
from representation.pair_tasks import MEASURE, PairTask, pair_tasks
from representation.progress import each
from representation.resampled import once
from representation.subject import Subject
from representation.texts import Texts
from representation.zscore_figures import score_figure

Config = dict[str, Any]
LIMITS = {"batch_zscore.pairs": Limit(8), "batch_zscore.orders": Limit(2), "batch_zscore.alpha": real(0)}
READINGS = ("routing", "concat", "sum")  # hidden alone is not standardised in the published code


def answer(subjects: list[Subject], texts: Texts, settings: Config) -> Answer | None:
    """None where no encoder is a mixture of experts, or no task is of pairs."""
    own = settings["batch_zscore"]
    found = mixtures(subjects)
    tasks = pair_tasks(list(texts.task_set.data.values()), own["pairs"], settings["texts_seed"])
    if not found or not tasks:
        return None
    rows = []
    for subject in each(found, "batch_zscore", settings):
        parts = [raw_parts(subject, task) for task in tasks]
        for batch in (None, *own["batches"]):
            for reading in READINGS:
                harms = [
                    harm(task, p, reading, batch, own["orders"], own["alpha"])
                    for task, p in zip(tasks, parts, strict=True)
                ]
                means = {key: float(np.mean([h[key] for h in harms])) for key in ("mean", "spread", "low", "high")}
                means |= {"entry": max(h["entry"] for h in harms), "cosine": float(np.mean([h["cosine"] for h in harms]))}
                rows.append({"encoder": subject.label, "reading": reading, "batch": batch or 0, **means})
    frame = pd.DataFrame(rows)
    over = f"{sum(len(t.left) for t in tasks)} pairs of {len(tasks)} tasks of {texts.benchmark}"
    return Answer(
        "batch_zscore",
        "The published z-score by batch",
        [grid(frame, own, over)],
        [score_figure(frame, own["orders"], over)],
        {"batch_zscore": frame},
        ["A batch of one text leaves zeros, which have no cosine: then nothing can be scored at all."],
    )


def raw_parts(subject: Subject, task: PairTask) -> Vectors:
    """HS [N, D] and RW [N, sum N_l] of the task's texts as they come, neither standardised nor of unit length."""
    names = {"HS": "moee:hidden", "RW": "moee:routing"}
    readings = readings_of(subject, names, standardise="none", normalize=False)
    return encode(readings, subject.encoder(), task.texts, "")


def vectors_of(parts: Vectors, reading: str, batches: list[NDArray[np.int64]] | None, alpha: float) -> NDArray[np.float32]:
    """[N, E] of unit length, each of `batches` (places of its texts) standardised by itself; None: not standardised."""
    import torch
    from torch.nn import functional as F

    from poolers.standardise import Standardise

    held = {}
    for name, raw in parts.items():
        x = torch.from_numpy(raw)
        by_batch = Standardise(x.shape[1], "batch")
        if batches is not None:
            x = x.clone()
            for places in batches:
                x[places] = by_batch(torch.from_numpy(raw[places]))
        held[name] = x
    if reading == "sum":
        held = {"HS": F.normalize(held["HS"], dim=-1), "RW": alpha**0.5 * F.normalize(held["RW"], dim=-1)}
    chosen = [held["RW"]] if reading == "routing" else [held["HS"], held["RW"]]
    found: NDArray[np.float32] = F.normalize(torch.cat(chosen, dim=1), dim=-1).numpy()
    return found


def batches_of(count: int, size: int, seed: int) -> list[NDArray[np.int64]]:
    """Places of `count` texts in random order, cut into batches; a last text alone joins the batch before it."""
    order = np.random.default_rng(seed).permutation(count)
    cut = [order[i : i + size] for i in range(0, count, size)]
    if len(cut) > 1 and len(cut[-1]) == 1:
        cut[-2:] = [np.concatenate(cut[-2:])]
    return cut


def harm(task: PairTask, parts: Vectors, reading: str, batch: int | None, orders: int, alpha: float) -> dict[str, float]:
    """Return over random orders of the texts: the score's mean, standard deviation and range; and how far a text's
    vector of one order is from that of the next: the largest difference of an entry, and the mean cosine.
    """
    count = len(task.texts)
    each_order = range(orders) if batch else range(1)
    found = [
        vectors_of(parts, reading, batches_of(count, batch, seed) if batch else None, alpha) for seed in each_order
    ]
    scores = [float(task.score(task.similarities(v), once(len(task.left)))[0]) for v in found]
    apart = list(zip(found[:-1], found[1:], strict=True))
    return {
        "mean": float(np.mean(scores)),
        "spread": float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0,
        "low": min(scores),
        "high": max(scores),
        "entry": max((float(np.abs(a - b).max()) for a, b in apart), default=0.0),
        "cosine": float(np.mean([(a * b).sum(axis=1).mean() for a, b in apart])) if apart else 1.0,
    }


def grid(frame: pd.DataFrame, own: Config, over: str) -> Grid:
    """One row an encoder, reading and size of batch."""
    rows = []
    for r in frame.sort_values(["encoder", "reading"], kind="stable", key=_order(frame)).to_dict("records"):
        batch = f"{r['batch']} texts" if r["batch"] else "none"
        cells = [score(r["mean"]), score(r["spread"]), f"{score(r['low'])} to {score(r['high'])}"]
        cells += [score(r["entry"], 3), score(r["cosine"], 3)]
        rows.append([Cell(str(r["encoder"])), Cell(str(r["reading"])), Cell(batch), *map(Cell, cells)])
    caption = (
        f"Scores over {own['orders']} random orders of the same texts, mean over tasks "
        f"({'; '.join(MEASURE.values())}); {over}. Entry, cosine: of a text's vector of unit length in one order and "
        "in the next, the largest difference of an entry and the mean cosine."
    )
    head = ["Encoder", "Reading", "Standardised by", "Score", "SD", "Range", "Entry", "Cosine"]
    return Grid("batch-zscore", caption, head, rows, left=3, title="Standardised by batch")


def _order(frame: pd.DataFrame) -> Any:
    """Keep encoders and readings in their order, batches together below each."""
    places = {key: {name: i for i, name in enumerate(frame[key].unique())} for key in ("encoder", "reading")}
    return lambda column: column.map(places[column.name])
