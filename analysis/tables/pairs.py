"""The pairs of designs on all tasks: mean difference, interval and p of both tests, and the forest figure.

`layout=wilcoxon` prints the published kind of table alone (Tang and Yang 2024, arXiv 2409.02727): stars of the
signed-rank test over tasks.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas, legend, list_axes
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, LINE
from analysis.formats import level, p_text
from analysis.render import Section, Table
from analysis.statistics.correction import passes
from analysis.tables.compared_pairs import from_design, pairs_among
from analysis.tables.comparison import Comparison
from analysis.tables.marks import LEGEND, LOOKS, family_text, marked, marks_text, seeds_text

LEADING = "forest"  # the figure that the page shows first
MOST_FROM_ONE = 12  # designs beside the one that they are compared with
STARS = (0.05, 0.01, 0.001)
COLUMNS = {
    "p": "p over tasks and seeds",
    "p_holm": "Holm p",
    "p_wilcoxon": "p Wilcoxon",
    "p_wilcoxon_holm": "Holm p (Wilcoxon)",
}


def section(compared: Comparison) -> Section:
    """Return the table in the layout asked for, the forest figure and pairs.csv."""
    table = wilcoxon_table(compared) if compared.settings.layout == "wilcoxon" else pair_table(compared)
    notes = _reach(compared.main_pairs, compared.settings.alpha)
    frames = {"pairs": _noted(compared)}
    return Section("pairs", table.title, [table], partial(_figures, compared), frames, notes, main=True)


def _reach(pairs: pd.DataFrame, alpha: float) -> list[str]:
    """Say where so few tasks allow no Wilcoxon p at the level."""
    least = min(1.0, 2.0 ** (1 - int(pairs["n_tasks"].iloc[0])))
    text = f"With {pairs['n_tasks'].iloc[0]} tasks no Wilcoxon p can be below {p_text(least)}, whatever the scores."
    return [text] if least > alpha else []


def _figures(compared: Comparison) -> list[Drawing]:
    return [forest(compared)]


def _noted(compared: Comparison) -> pd.DataFrame:
    """The pairs; where differences were let through, the keys in which each pair differs."""
    pairs, notes = compared.pairs, compared.footnotes
    if not notes:
        return pairs
    both = zip(pairs["first"], pairs["second"], strict=True)
    keys = [";".join(key for note in notes if note.parts(*pair) for key in note.keys) for pair in both]
    return pairs.assign(differs_in=keys)


def pair_table(compared: Comparison) -> Table:
    """One row per pair on all tasks: the difference with its mark, interval, p and Holm's p of both tests."""
    rows, unit = compared.main_pairs.iloc[compared.leading(compared.main_pairs)], compared.unit
    margin, seeds = unit.margin(compared.settings.rope), bool(rows["p"].notna().any())
    names = {name: title for name, title in COLUMNS.items() if seeds or "wilcoxon" in name}
    differences = zip(map(unit.signed, rows["mean_difference"]), rows["significant"], strict=True)
    columns = _sized(rows, compared, [marked(*both) for both in differences])
    columns |= {title: rows[name].to_numpy() for name, title in names.items()}
    of_seeds = "p over tasks and seeds, and " if seeds else ""
    caption = (
        f"Mean difference over {_over(rows, compared)} with its uncorrected {level(compared.settings.alpha)} interval,"
        f" {of_seeds}p of the exact Wilcoxon signed-rank test over tasks; {family_text(rows)}; {marks_text(rows)}."
    )
    if seeds:
        columns[f"Within {margin}"] = np.where(rows["equivalent"], "yes", "-")
        found = unit.points(float(rows["detectable"].median()))
        caption += f" 80 % of such studies find a difference of {found} (median pair);"
        caption += f" within {margin}: two one-sided tests pass (Holm)."
    formats = dict.fromkeys(names.values(), p_text)
    return compared.table("pairs", "Pairs of designs", caption, pd.DataFrame(columns), formats=formats)


def _over(rows: pd.DataFrame, compared: Comparison) -> str:
    """Return what intervals are over: "56 tasks and 3 seeds"; of a design with fewer seeds it is tasks alone."""
    tested = rows["p"].notna()
    alone = "" if tested.all() else " (tasks alone for pairs without p)"
    return f"{compared.over} and {seeds_text(rows[tested])}{alone}" if tested.any() else compared.over


def _sized(rows: pd.DataFrame, compared: Comparison, differences: list[str]) -> dict[str, Any]:
    """Return the first columns of both layouts."""
    ends = list(map(compared.unit.interval, rows["low"], rows["high"]))
    interval = f"{level(compared.settings.alpha)} interval"
    return {"Pair": compared.pair_texts(rows), "Difference": differences, interval: ends}


def wilcoxon_table(compared: Comparison) -> Table:
    """One row per pair: mean difference, its interval, W, p and Holm's p; stars of the plain test."""
    rows, unit = compared.main_pairs.iloc[compared.leading(compared.main_pairs)], compared.unit
    levels = [compared.settings.alpha, *(at for at in STARS if at < compared.settings.alpha * (1 - 1e-9))][:3]
    passed = np.sum([passes(rows["p_wilcoxon"].to_numpy(), at) for at in levels], axis=0)
    differences = [unit.signed(mean) + "*" * k for mean, k in zip(rows["mean_difference"], passed, strict=True)]
    columns = _sized(rows, compared, differences)
    columns |= {"W": rows[["w_plus", "w_minus"]].min(axis=1).to_numpy(), "p": rows["p_wilcoxon"].to_numpy()}
    columns["Holm p"] = rows["p_wilcoxon_holm"].to_numpy()
    stars = ", ".join(f"{'*' * (k + 1)} p <= {at:g}" for k, at in enumerate(levels))
    caption = (
        f"Mean difference over {_over(rows, compared)} with its interval, and W and p of the exact two-sided Wilcoxon"
        f" signed-rank test over tasks; {family_text(rows)}. Stars by the uncorrected p: {stars}."
    )
    formats = {"W": "{:g}".format, "p": p_text, "Holm p": p_text}
    return compared.table("pairs", "Wilcoxon signed-rank tests", caption, pd.DataFrame(columns), formats=formats)


def forest(compared: Comparison) -> Drawing:
    """Each design against the control, or against the highest mean, over all tasks or over the only type."""
    one, (designs, sentence) = compared.reference, compared.highest(MOST_FROM_ONE + 1)
    rows = from_design(pairs_among(compared.main_pairs, designs), one)
    names = short_names([one, *rows["second"]])
    labels, label = list(names.values())[1:], f"difference from {names[one]}, points"
    width = max(3.0 + inches(labels), 0.4 + inches([label]))
    figure = canvas(min(12.0, width), 1.25 + LINE * 1.4 * len(rows))
    axes = figure.add_subplot()
    for place, row in enumerate(rows.to_dict("records")):
        look = LOOKS[row["significant"]]
        axes.hlines(place, row["low"], row["high"], color=look["color"], linewidth=1.3)
        axes.plot(row["mean_difference"], place, linestyle="none", markersize=5, zorder=3, **look)
    axes.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
    if float(np.nanmax(np.abs(rows[["low", "high", "mean_difference"]]), initial=0.0)) < 1e-9:
        axes.set_xlim(-0.01, 0.01)  # all equal: a scale that says so
    list_axes(axes, len(rows), 7)
    axes.set_xlabel(label, loc="right")
    axes.set_yticks(range(len(rows)), labels)
    used = rows["significant"].unique()
    looks = {LEGEND[look]: {"markersize": 5, "linewidth": 1.3, **LOOKS[look]} for look in LOOKS if look in used}
    legend(figure, looks, loc="outside lower center", ncols=1)
    caption = (
        f"Mean difference over {_over(rows, compared)}, each minus {one}, with its"
        f" {level(compared.settings.alpha)} interval, not corrected. {sentence}"
    ).strip()
    return Drawing(LEADING, "Differences with intervals", caption, figure)
