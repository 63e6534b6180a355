"""Before and after training: each trained design beside its untrained reference."""

import math
from collections import defaultdict

import pandas as pd

from analysis.grids.formats import fraction
from analysis.grids.grid import Cell, Grid
from analysis.manifests.designs import Design
from analysis.names import by_number, listed
from analysis.questions.means import MEAN_TASKS, heads, seed_means, type_means
from analysis.questions.question import Answer, Material
from analysis.questions.tables import rest_text
from analysis.scores.choose import twins_of
from analysis.settings import Settings
from analysis.statistics.intervals import typical_difference
from analysis.statistics.wilcoxon import signed_rank

PLACE = 140
STAGES = ("before", "after", "gain", "typical gain", "p")


def answer(material: Material) -> Answer:
    """Return the table of before and after, without rows where no design has an untrained reference."""
    if material.gain is None:
        return Answer("before_after", notes=material.gain_notes, main=True)
    grid, frame = gain_grid(material, material.gain), material.gain.reset_index()
    return Answer("before_after", grids=[grid], frames={"before_after": frame}, notes=material.gain_notes, main=True)


def gain_grid(material: Material, gain: pd.DataFrame) -> Grid:
    """Before, after and gain for every design with an untrained reference."""
    designs = list(gain.index.unique("design"))
    best = material.highest(material.settings.rows_shown)[0]
    shown = [design for design in designs if design in best]
    rows, numbers = [], material.settings.numbers
    shows = (numbers.score, numbers.score, numbers.signed, numbers.signed, fraction)
    for design in shown:
        for stage, show in zip(STAGES, shows, strict=True):
            values = ["" if math.isnan(value) else show(value) for value in gain.loc[(design, stage)].tolist()]
            rows.append([*map(Cell, [design if stage == "before" else "", stage, *values])])
    caption = (
        "Before and after training: the same design untrained (its random or plain start) and trained. Gain: of the"
        " means. Typical gain: Hodges-Lehmann difference over tasks, with p of its two-sided exact Wilcoxon signed-rank"
        " test, uncorrected."
    )
    rest = rest_text(len(shown), len(designs), "designs; before_after.csv has all.")
    header = ["Design", "", *heads(material)]
    return Grid("before-after", caption, header, rows, left=2, rest=rest, title="Before and after training")


def training_gain(
    frame: pd.DataFrame,
    all_designs: dict[str, Design],
    compared: list[str],
    types: dict[str, list[str]],
    settings: Settings,
) -> tuple[pd.DataFrame | None, list[str]]:
    """Return (design, stage) x types for the compared designs that have an untrained twin, and notes on the others.

    Stage `gain` is that of the means; `typical gain` is the Hodges-Lehmann difference over tasks and `p` that of its
    two-sided exact signed-rank test, uncorrected; there is neither over types.
    The twin shares study, pooler and attention. One that lacks a task is left out, with a note, since a mean over
    other tasks would be no "before". None where no design has a twin.
    """
    tasks = [task for of_type in types.values() for task in of_type]
    have = {label: set(rows.tolist()) for label, rows in frame.groupby("design")["task"]}
    seeds = {label: ", ".join(by_number(rows.unique())) for label, rows in frame.groupby("design")["seed"]}
    parts, notes = {}, []
    other_seeds: dict[tuple[str, str], list[str]] = defaultdict(list)
    for label, twin in twins_of(compared, all_designs).items():
        lacking = [task for task in tasks if task not in have.get(twin, set())]
        if lacking:
            notes.append(f"No before-and-after row for {label}: {twin} lacks {listed(lacking, 4)}.")
            continue
        if seeds[twin] != seeds[label]:
            other_seeds[seeds[twin], seeds[label]].append(label)
        matrix = seed_means(frame, [twin, label], tasks)
        both = type_means(matrix, types)
        before, after = both.loc[twin], both.loc[label]
        tested = _tested(matrix[label] - matrix[twin], types, settings).reindex(before.index)
        parts[label] = pd.DataFrame([before, after, after - before, tested["typical"], tested["p"]], index=list(STAGES))
    for (before_seeds, after_seeds), names in other_seeds.items():
        notes.append(f"Before training: seeds {before_seeds}, after it: {after_seeds} ({listed(names)}).")
    return (pd.concat(parts, names=["design", "stage"]) if parts else None), notes


def _tested(gains: pd.Series, types: dict[str, list[str]], settings: Settings) -> pd.DataFrame:
    """Return block x (typical, p): the Hodges-Lehmann gain and its signed-rank test."""
    rows = {}
    for kind, tasks in {**types, MEAN_TASKS: list(gains.index)}.items():
        values = gains.loc[tasks].to_numpy()[None]
        test = signed_rank(values, settings.decimals)
        size = typical_difference(values, test, decimals=settings.decimals).estimate[0]
        rows[kind] = {"typical": float(size), "p": float(test.p[0])}
    return pd.DataFrame.from_dict(rows, orient="index")
