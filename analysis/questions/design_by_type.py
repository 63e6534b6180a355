"""Design x type: do the differences between designs depend on the type of task, and how large are they on each?

Over tasks by permutation within types of unequal spread; over tasks and seeds by F.
"""

from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas, list_axes, panel_axes
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, LINE, MOST_DESIGNS
from analysis.grids.formats import Numbers, equals, percent
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import common_seeds, corrected_pairs, pairs_among, seed_cube
from analysis.questions.pair_figures import LOOKS
from analysis.questions.pair_texts import correction_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, claims, mark_of, marked_cell, star_legend
from analysis.settings import Settings
from analysis.statistics.arrays import Floats, rounded
from analysis.statistics.contrasts import helmert
from analysis.statistics.correction import passes
from analysis.statistics.interaction import over_seeds, permuted
from analysis.statistics.intervals import mean_and_error, student_reach
from analysis.statistics.seeds import FEWEST_SEEDS, reach_of_seeds

PLACE = 45
Types = dict[str, list[str]]


def answer(material: Material) -> Answer | None:
    """Return the test and the differences by type; None below two types of two tasks."""
    types = types_tested(material)
    if len(types) < 2:
        return None
    designs, sentence = material.highest(MOST_DESIGNS)
    settings = replace(material.settings, family="table")  # all types are corrected together
    matrix = material.matrix[designs]
    test = _interaction(material, designs, types)
    at_hand = pairs_among(material.pairs, designs)
    tests = corrected_pairs(at_hand[at_hand["type"].isin(types)].reset_index(drop=True), settings)
    simple = simple_effects(tests, matrix, types, settings)
    reference = material.control or str(matrix.mean().idxmax())
    shown, finding = from_reference(simple, reference), _verdict(test)
    return Answer(
        "design_by_type",
        grids=[_grid(shown, reference, types, settings, f"{finding} {sentence}".strip())],
        draw=lambda: [_figure(shown, reference, types, settings, sentence)],
        frames={"simple_effects": simple, "design_by_type": pd.DataFrame([test])},
        notes=[finding],
    )


def types_tested(material: Material) -> Types:
    """Return the types that have two tasks or more, and their tasks."""
    return {kind: tasks for kind, tasks in material.types.items() if len(tasks) > 1}


def _interaction(material: Material, designs: list[str], types: Types) -> dict[str, Any]:
    """Return both tests of design x type, and whether it is told."""
    settings, sizes = material.settings, [len(tasks) for tasks in types.values()]
    matrix, contrasts = material.matrix.loc[list(chain(*types.values())), designs], helmert(len(designs))
    tasks = permuted(rounded(matrix.to_numpy(dtype=np.float64) @ contrasts, settings.decimals), sizes)
    cube = common_seeds(seed_cube(material.frame, matrix))
    runs = rounded(np.einsum("dts,dk->tks", cube, contrasts), settings.decimals)
    seeds = over_seeds(runs, sizes)
    told = seeds.n_seeds >= FEWEST_SEEDS and bool(passes(np.array([tasks.p, seeds.p_seeds]), settings.alpha).all())
    if told:  # and seen alike where designs have further seeds of their own, which the second test leaves out
        own, shared = (_by_type(vectors, sizes) for vectors in (matrix.to_numpy() @ contrasts, runs.mean(axis=2)))
        told = bool((own * shared).sum() > 0)
    sized = {"n_designs": len(designs), "n_types": len(types), "n_tasks": sum(sizes)}
    return sized | vars(tasks) | vars(seeds) | {"told": told}


def _by_type(vectors: Floats, sizes: list[int]) -> Floats:
    """Return the types' mean vectors around their mean, [types, k], of vectors [n, k], type by type."""
    means = np.stack([of_type.mean(axis=0) for of_type in np.split(vectors, np.cumsum(sizes)[:-1])])
    return means - means.mean(axis=0)


def simple_effects(tests: pd.DataFrame, matrix: pd.DataFrame, types: Types, settings: Settings) -> pd.DataFrame:
    """Return the pairs [one row per (type, pair)], which were corrected over all types together, with intervals.

    `mean`: mean difference, over tasks and the common seeds where these are enough, else over tasks; `low`, `high`: its
    interval; `low_together`, `high_together`: with all rows together (Bonferroni).
    """
    rows = zip(tests["type"], tests["first"], tests["second"], strict=True)
    differences = [(matrix.loc[types[kind], two] - matrix.loc[types[kind], one]).to_numpy() for kind, one, two in rows]
    of_tasks = np.array([np.ravel(mean_and_error(each[None])) for each in differences])
    df = np.array([max(1, len(each) - 1) for each in differences])
    unknown = tests["mean_seeds"].isna()
    mean = np.where(unknown, of_tasks[:, 0], tests["mean_seeds"])
    columns = {"mean": mean}
    for ending, tails in (("", 1), ("_together", 1 if settings.correction == "none" else len(tests))):
        level = 1 - settings.alpha / tails
        reach = np.where(unknown, student_reach(of_tasks[:, 1], df, level), reach_of_seeds(tests, level))
        columns |= {f"low{ending}": mean - reach, f"high{ending}": mean + reach}
    return tests.assign(**columns)


def from_reference(simple: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return the rows that hold the reference, turned to design minus reference; `design`: the other one."""
    rows = simple[(simple["first"] == reference) | (simple["second"] == reference)]
    side = np.where(rows["first"] == reference, 1, -1)
    columns = {"design": rows["second"].where(side > 0, rows["first"]), "mean": rows["mean"] * side}
    for end in ("", "_together"):
        low, high = rows[f"low{end}"], rows[f"high{end}"]
        columns |= {f"low{end}": low.where(side > 0, -high), f"high{end}": high.where(side > 0, -low)}
    return rows.assign(**columns)


def _verdict(test: dict[str, Any]) -> str:
    """Return whether designs differ by type, in one sentence."""
    over = f"p {equals(test['p'])} over tasks"
    if test["n_seeds"] < FEWEST_SEEDS:
        return f"Design x type: {over}; no claim about designs."
    told, seeds = "are told" if test["told"] else "are not told", f"over tasks and the {test['n_seeds']} seeds"
    return (
        f"The differences between designs {told} to depend on the type of task: {over}, p {equals(test['p_seeds'])}"
        f" {seeds}."
    )


def _grid(shown: pd.DataFrame, reference: str, types: Types, settings: Settings, sentences: str) -> Grid:
    """One row per design, one column per type: mean difference from the reference, interval and p."""
    rows, signed = [], settings.numbers.signed
    for design, of_types in shown.groupby("design", sort=False):
        records = of_types.set_index("type").loc[list(types)].to_dict("records")
        cells = [marked_cell(signed(row["mean"]), row, settings, _ends(row, settings.numbers)) for row in records]
        rows.append([Cell(str(design)), *cells])
    together = "" if settings.correction == "none" else f", the {shown['family_size'].iloc[0]:,} tested together"
    caption = (
        f"Mean difference from {reference} on each type, its {percent(settings.alpha)} interval over tasks and, where"
        f" {FEWEST_SEEDS} are known, seeds{together} (none where wider than all scores), and p of the two-sided"
        f" signed-rank test; {correction_text(shown, settings)}. {star_legend(shown, settings)}. {sentences}"
    )
    header = ["Design", *(f"{kind} (n = {len(tasks)})" for kind, tasks in types.items())]
    return Grid("design-by-type", caption, header, rows[: settings.rows_shown], title="Designs by type of task")


def _ends(row: Row, numbers: Numbers) -> str:
    """Return the interval, or nothing where two or three tasks leave it wider than all scores."""
    low, high = row["low_together"], row["high_together"]
    return numbers.interval(low, high) if high - low < 1 else ""


def _figure(shown: pd.DataFrame, reference: str, types: Types, settings: Settings, sentence: str) -> Drawing:
    """One panel per type, each with its own scale: difference from the reference with its interval."""
    names = short_names(shown["design"].unique())
    across = min(len(types), 4 if len(types) in (4, 7, 8) else 3)
    down = -(-len(types) // across)
    figure = canvas(inches(names.values()) + 0.4 + 1.9 * across, 0.7 + down * (0.75 + LINE * 1.15 * len(names)))
    grid = panel_axes(figure, len(types), across, sharey=True)
    looks = {"*": LOOKS["told"], "(*)": LOOKS["runs"], "": LOOKS["no"]}
    for axes, kind in zip(grid, types, strict=True):
        rows = shown[shown["type"] == kind].to_dict("records")
        for place, row in enumerate(rows):
            look = looks[mark_of(row, settings)]
            axes.hlines(place, row["low"], row["high"], color=look["color"], linewidth=1.3)
            axes.plot(row["mean"], place, markersize=5, **look)
        axes.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
        list_axes(axes, len(rows), 4, settings.numbers)
        axes.set_title(f"{kind} (n = {len(types[kind])})")
    grid[0].set_yticks(range(len(names)), names.values())
    figure.supxlabel(f"mean difference from {short_names([reference])[reference]}", fontsize=8)
    counts = [f"{kind} {int(rows['told'].sum())}" for kind, rows in shown.groupby("type", sort=False)]
    alt = f"Differences of {len(names)} designs from {reference} on {len(types)} types. Told: {', '.join(counts)}."
    marks = "blue discs: told of the designs; diamonds: of these runs alone"
    caption = (
        f"Mean difference from {reference} on each type of task with its {percent(settings.alpha)} interval over tasks"
        f" and, where {FEWEST_SEEDS} are known, seeds, uncorrected; each panel has its own scale;"
        f" {marks if claims(shown) else 'no claim about designs'}. {sentence}"
    ).strip()
    return Drawing("design_by_type", "Designs by type of task", caption, figure, alt)
