"""The table of pairs: the mean difference on every task type, its mark, and Holm's p of both tests below.

`layout=paper` is that of a paper's significance table (Tang and Yang 2024, arXiv 2409.02727): differences with stars
alone.
"""

from collections.abc import Callable

import pandas as pd

from analysis.grids.formats import fraction
from analysis.grids.grid import Cell, Grid
from analysis.manifests.cost import PAIR_COST_HEADER, has_costs, pair_cost_texts
from analysis.questions.means import footnote_keys
from analysis.questions.pair_figures import forest, heat_map
from analysis.questions.pair_texts import WILCOXON, correction_text, pair_notes
from analysis.questions.question import Answer, Material
from analysis.questions.tables import (
    DAGGER,
    OF_BEST,
    PAIR,
    Row,
    claims,
    mark_of,
    marked_cell,
    pair_name,
    rest_text,
    star_legend,
)
from analysis.settings import Settings
from analysis.statistics.correction import passes

PLACE = 30
STARS = (0.05, 0.01, 0.001)


def answer(material: Material) -> Answer:
    """Return the table of all pairs, in the layout asked for, and the figures that show them."""
    return Answer(
        "pairs",
        grids=[paper_grid(material) if material.settings.layout == "paper" else pair_grid(material)],
        draw=lambda: [drawn for make in (forest, heat_map) if (drawn := make(material))],
        frames={"pairs": _noted(material)},
        notes=pair_notes(material),
        main=True,
    )


def _noted(material: Material) -> pd.DataFrame:
    """The pairs; where differences were let through, the keys in which each pair differs."""
    pairs = material.pairs
    if not material.footnotes:
        return pairs
    both = zip(pairs["first"], pairs["second"], strict=True)
    parted = [[note for note in material.footnotes if note.parts(one, other)] for one, other in both]
    return pairs.assign(differs_in=list(map(footnote_keys, parted)))


def pair_grid(material: Material) -> Grid:
    """One row per pair, one column per type: mean difference, mark, Holm's p of both tests."""
    return _pairs_by_type(material, _tested, [star_legend(material.pairs, material.settings)])


def _pairs_by_type(material: Material, cell: Callable[[Row, Settings], Cell], legend: list[str]) -> Grid:
    """One row per pair, one column per type, each cell made from its row."""
    pairs, settings = material.pairs, material.settings
    kinds = pairs["type"].unique().tolist()
    total = len(pairs) // len(kinds)  # the same pairs on every type
    places = material.leading(material.pairs_on(material.last))[: settings.rows_shown]
    shown = [pairs.iloc[k * total + places].to_dict("records") for k in range(len(kinds))]
    rows, costly = [], has_costs(material.designs)
    for records in zip(*shown, strict=True):
        last = records[-1]
        costs = pair_cost_texts(material.designs[last["first"]], material.designs[last["second"]]) if costly else []
        texts = [pair_name(last), *costs]
        rows.append([*map(Cell, texts), *[cell(record, settings) for record in records]])
    header = [PAIR, *(PAIR_COST_HEADER if costly else [])]
    header += [f"{kind} (n = {pairs['n_tasks'].iloc[k * total]})" for k, kind in enumerate(kinds)]
    caption = (
        "Mean difference in score, second minus first; p: over tasks and seeds, both random (docs/statistics.md);"
        f" tasks: {WILCOXON}; {correction_text(pairs, settings)}. {'; '.join(legend)}."
    )
    rest = rest_text(len(rows), total, f"{OF_BEST}; pairs.csv has all.")
    return Grid("pairs", caption, header, rows, rest=rest, title="Pairs of designs")


def _tested(row: Row, settings: Settings) -> Cell:
    return marked_cell(settings.numbers.signed(row["mean_difference"]), row)


def paper_grid(material: Material) -> Grid:
    """One row per pair, one column per type: the mean difference with its stars, no p."""
    settings, pairs = material.settings, material.pairs
    levels = [f"{'*' * (k + 1)} p at most {fraction(v)}" for k, v in enumerate(star_levels(settings.alpha))]
    legend = [f"Stars: {', '.join(levels)} over tasks and seeds (Holm)"] if claims(pairs) else []
    legend.append(f"{DAGGER} over tasks only (Wilcoxon, Holm)")
    return _pairs_by_type(material, _starred, legend)


def star_levels(alpha: float) -> list[float]:
    """Return the levels of *, ** and ***: alpha, then the usual ones below it."""
    return [alpha, *[level for level in STARS if level < alpha * (1 - 1e-9)]][:3]


def _starred(row: Row, settings: Settings) -> Cell:
    stars = "*" * sum(bool(passes(row["p_holm"], level)) for level in star_levels(settings.alpha))
    return Cell(settings.numbers.signed(row["mean_difference"]), mark=stars or mark_of(row))
