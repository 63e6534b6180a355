"""What the published standardisation by batch does to vectors and scores (docs/reference_divergences.md, M1).

The public code of MoEE (arXiv 2410.10814) subtracts the mean of each batch of texts and divides by its standard
deviation, so a vector depends on which other texts were encoded with it. Everything else here is held fixed.
"""

from typing import Any

import numpy as np
import pandas as pd

from analysis.formats import score
from analysis.tables.grid import Cell, Grid
from records.limits import Limit, real
from representation.answer import Answer
from representation.mixtures.moee_vectors import Vectors, check_sizes, encode, mixtures, readings_of
from representation.mixtures.pair_tasks import PairTask, measures, pair_tasks, said
from representation.mixtures.zscore import WHOLE, Batching, Harm, harm
from representation.mixtures.zscore_figures import score_figure
from representation.progress import each
from representation.subject import Subject
from representation.texts import Texts

Config = dict[str, Any]
LIMITS = {"batch_zscore.pairs": Limit(8), "batch_zscore.orders": Limit(2), "batch_zscore.alpha": real(0)}
READINGS = ("routing", "concat", "sum")  # hidden alone is not standardised in the published code


def answer(subjects: list[Subject], texts: Texts, settings: Config) -> Answer | None:
    """None where no encoder is a mixture of experts, or no task is of pairs."""
    own = settings["batch_zscore"]
    check_sizes("batch_zscore.batches", own["batches"])
    found = mixtures(subjects)
    tasks = pair_tasks(list(texts.task_set.data.values()), own["pairs"], settings["texts_seed"])
    if not found or not tasks:
        return None
    rows = []
    for subject in each(found, "batch_zscore", settings):
        parts = [raw_parts(subject, task) for task in tasks]
        for size in (0, *own["batches"], WHOLE):
            for reading in READINGS:
                batching = Batching(reading, own["alpha"], size, own["orders"])
                harms = [harm(task, raw, batching) for task, raw in zip(tasks, parts, strict=True)]
                rows.append({"encoder": subject.label, "reading": reading, "batch": size, **_over_tasks(harms)})
    frame = pd.DataFrame(rows)
    over = f"{said(tasks)} of {texts.benchmark}"
    return Answer(
        "batch_zscore",
        "The published z-score by batch",
        [grid(frame, own, f"{measures(tasks)}); {over}")],
        [score_figure(frame, own["orders"], over)],
        {"batch_zscore": frame},
        [
            "A batch of one text leaves zeros, which have no cosine: then nothing can be scored at all.",
            "All texts of a task as one batch: what standardisation by fixed statistics would be, as "
            "reading.standardise=corpus has them of the training texts.",
        ],
    )


def _over_tasks(harms: list[Harm]) -> dict[str, float]:
    """Means over tasks; of entries the largest."""
    means = {key: float(np.mean([getattr(h, key) for h in harms])) for key in vars(harms[0])}
    return means | {"entry": max(h.entry for h in harms)}


def raw_parts(subject: Subject, task: PairTask) -> Vectors:
    """HS [N, D] and RW [N, sum N_l] of the task's texts as they come, neither standardised nor of unit length."""
    names = {"HS": "moee:hidden", "RW": "moee:routing"}
    readings = readings_of(subject, names, standardise="none", normalize=False)
    return encode(readings, subject.encoder(), task.texts, "")


def grid(frame: pd.DataFrame, own: Config, over: str) -> Grid:
    """One row an encoder, reading and size of batch."""
    rows = []
    for r in frame.sort_values(["encoder", "reading"], kind="stable", key=_order(frame)).to_dict("records"):
        batch = {0: "none", WHOLE: "all texts"}.get(r["batch"], f"{r['batch']} texts")
        cells = [score(r["mean"]), score(r["spread"]), f"{score(r['low'])} to {score(r['high'])}"]
        cells += [score(r["entry"], 3), score(r["cosine"], 3)]
        rows.append([Cell(str(r["encoder"])), Cell(str(r["reading"])), Cell(batch), *map(Cell, cells)])
    caption = (
        f"Scores over {own['orders']} random orders of the same texts, mean over tasks "
        f"({over}. Entry, cosine: of a text's vector of unit length in one order and "
        "in the next, the largest difference of an entry and the mean cosine."
    )
    head = ["Encoder", "Reading", "Standardised by", "Score", "SD", "Range", "Entry", "Cosine"]
    return Grid("batch-zscore", caption, head, rows, left=3, title="Standardised by batch")


def _order(frame: pd.DataFrame) -> Any:
    """Keep encoders and readings in their order, batches together below each."""
    places = {key: {name: i for i, name in enumerate(frame[key].unique())} for key in ("encoder", "reading")}
    return lambda column: column.map(places[column.name])
