"""The table of pairs: the Hodges-Lehmann difference on every task type, its mark, and the corrected p below.

`layout=paper` is that of a paper's significance table (Tang and Yang 2024, arXiv 2409.02727): differences with stars
alone. The paper stars mean differences; here a star stands on the Hodges-Lehmann difference, which the test is about.
"""

from collections.abc import Callable

import pandas as pd

from analysis.grids.formats import fraction
from analysis.grids.grid import Cell, Grid
from analysis.manifests.cost import PAIR_COST_HEADER, has_costs, pair_cost_texts
from analysis.questions.means import footnote_keys
from analysis.questions.pair_figures import forest, heat_map
from analysis.questions.pair_texts import correction_text, pair_notes, signed_rank_text, unreachable_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import (
    NO_CLAIM,
    OF_BEST,
    PAIR,
    Row,
    after_correction,
    claims,
    mark_of,
    marked_cell,
    pair_name,
    rest_text,
    star_legend,
    tasks_text,
)
from analysis.settings import Settings
from analysis.statistics.correction import passes

PLACE = 30
MEAN = "Mean"  # heads the column of mean differences
STARS = (0.05, 0.01, 0.001)
DAGGER = "†"


def answer(material: Material) -> Answer:
    """Return the table of all pairs, in the layout asked for, and the figures that show them."""
    return Answer(
        "pairs",
        grids=[paper_grid(material) if material.settings.layout == "paper" else pair_grid(material)],
        draw=lambda: [drawn for make in (forest, heat_map) if (drawn := make(material))],
        frames={"pairs": for_file(_noted(material), material.settings.correction)},
        notes=pair_notes(material),
        main=True,
    )


def for_file(tests: pd.DataFrame, correction: str) -> pd.DataFrame:
    """Leave out the column that repeats `p_holm`, `p_bh` or p, and name the floor after its correction."""
    if correction == "none":
        return tests.drop(columns=["p_adjusted", "p_min_adjusted"])
    return tests.drop(columns="p_adjusted").rename(columns={"p_min_adjusted": f"p_min_{correction}"})


def _noted(material: Material) -> pd.DataFrame:
    """The pairs; where differences were let through, the keys in which each pair differs."""
    pairs = material.pairs
    if not material.footnotes:
        return pairs
    both = zip(pairs["first"], pairs["second"], strict=True)
    parted = [[note for note in material.footnotes if note.parts(one, other)] for one, other in both]
    return pairs.assign(differs_in=list(map(footnote_keys, parted)))


def pair_grid(material: Material) -> Grid:
    """One row per pair, one column per type: the difference of the test, its mark, and the corrected p below."""
    legend = [star_legend(material.pairs, material.settings)]
    if (material.pairs["reachable"] != "yes").any():
        legend.append(f"n.a. = {unreachable_text(material.pairs, material.settings)}")
    return _pairs_by_type(material, _tested, legend)


def _pairs_by_type(material: Material, cell: Callable[[Row, Settings], Cell], legend: list[str]) -> Grid:
    """One row per pair; the mean difference, unmarked, then one column per type, each cell made from its row."""
    pairs, settings = material.pairs, material.settings
    kinds = pairs["type"].unique().tolist()
    total = len(pairs) // len(kinds)  # the same pairs on every type
    places = material.leading(material.pairs_on(material.last))[: settings.rows_shown]
    shown = [pairs.iloc[k * total + places].to_dict("records") for k in range(len(kinds))]
    rows, costly = [], has_costs(material.designs)
    for records in zip(*shown, strict=True):
        last = records[-1]
        costs = pair_cost_texts(material.designs[last["first"]], material.designs[last["second"]]) if costly else []
        texts = [pair_name(last), *costs, settings.numbers.signed(last["difference"])]
        rows.append([*map(Cell, texts), *[cell(record, settings) for record in records]])
    header = [PAIR, *(PAIR_COST_HEADER if costly else []), MEAN]
    header += [f"{kind} (n = {pairs['n_pairs'].iloc[k * total]})" for k, kind in enumerate(kinds)]
    over = tasks_text(pairs["type"].iloc[-1], pairs["n_pairs"].iloc[-1], every="all ")
    caption = (
        "Hodges-Lehmann difference in score (median of the averages of every two tasks' differences), second minus"
        f" first, with p of the {signed_rank_text(pairs, settings)}; {correction_text(pairs, settings)}."
        f" {'; '.join(legend)}. Mean: mean difference over {over}, which this test does not test."
    )
    rest = rest_text(len(rows), total, f"{OF_BEST}; pairs.csv has all.")
    return Grid("pairs", caption, header, rows, rest=rest, title="Pairs of designs")


def _tested(row: Row, settings: Settings) -> Cell:
    return marked_cell(settings.numbers.signed(row["hodges_lehmann"]), row, settings)


def paper_grid(material: Material) -> Grid:
    """One row per pair, one column per type: the difference of the test with its stars, no p."""
    settings, pairs = material.settings, material.pairs
    levels = [f"{'*' * (k + 1)} p at most {fraction(v)}" for k, v in enumerate(star_levels(settings.alpha))]
    after, alpha = after_correction(settings), fraction(settings.alpha)
    legend = [f"Stars: {', '.join(levels)}{after}, over tasks and over tasks and seeds: told of the designs"]
    legend.append(f"{DAGGER} at most {alpha} over tasks alone, or before the correction")
    if not claims(pairs):
        legend = [f"No star: {NO_CLAIM}"]
    if (pairs["reachable"] != "yes").any():
        legend.append(f"n.a. {unreachable_text(pairs, settings)}")
    return _pairs_by_type(material, _starred, legend)


def star_levels(alpha: float) -> list[float]:
    """Return the levels of *, ** and ***: alpha, then the usual ones below it."""
    return [alpha, *[level for level in STARS if level < alpha * (1 - 1e-9)]][:3]


def _starred(row: Row, settings: Settings) -> Cell:
    p = max(row["p_adjusted"], row["p_seeds_adjusted"])
    stars = "*" * sum(bool(passes(p, level)) for level in star_levels(settings.alpha)) if row["told"] else ""
    before = DAGGER if mark_of(row, settings) == "(*)" else ""
    closed = " n.a." if row["reachable"] != "yes" else ""
    text = settings.numbers.signed(row["hodges_lehmann"])
    return Cell(text, mark=stars or ",".join(filter(None, (before, closed))))
