"""The table of pairs: the Hodges-Lehmann difference on every task type, its mark, and the corrected p below.

`layout=paper` is that of a paper's significance table (Tang and Yang 2024, arXiv 2409.02727): differences with stars
alone. The paper stars mean differences; here a star stands on the Hodges-Lehmann difference, which the test is about.
"""

from collections.abc import Callable

import pandas as pd

from analysis.grids.formats import fraction, signed
from analysis.grids.grid import Cell, Grid
from analysis.manifests.cost import PAIR_COST_HEADER, has_costs, pair_cost_texts
from analysis.questions.forest import forest, forest_by_type
from analysis.questions.heat_map import heat_map
from analysis.questions.means import footnote_keys
from analysis.questions.pair_texts import (
    correction_text,
    mean_text,
    pair_methods,
    pair_notes,
    signed_rank_text,
    typical_text,
    unreachable_text,
)
from analysis.questions.question import Answer, Material
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
        draw=lambda: [drawn for make in (forest, forest_by_type, heat_map) if (drawn := make(material))],
        csv={"pairs": for_file(_noted(material), material.settings.correction)},
        notes=pair_notes(material),
        methods=pair_methods(material),
        main=True,
    )


def for_file(tests: pd.DataFrame, correction: str) -> pd.DataFrame:
    """Leave out the column that repeats `p_holm`, `p_bh` or p, and name the floor after its correction."""
    table = tests.drop(columns=["p_adjusted"])
    if correction == "none":
        return table.drop(columns=["p_min_adjusted"])
    return table.rename(columns={"p_min_adjusted": f"p_min_{correction}"})


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
    return pairs_by_type(material, _pair_cell, pair_caption(material))


def pairs_by_type(material: Material, cell: Callable[[pd.Series, Settings], Cell], caption: str) -> Grid:
    """One row per pair; the mean difference, unmarked, then one column per type, each cell made from its row."""
    pairs, settings = material.pairs, material.settings
    kinds = pairs["type"].unique().tolist()
    total = len(pairs) // len(kinds)  # the same pairs on every type
    per_type = {kind: pairs.iloc[k * total : k * total + settings.rows_shown] for k, kind in enumerate(kinds)}
    rows, costly = [], has_costs(material.designs)
    for k in range(min(total, settings.rows_shown)):
        records = [per_type[kind].iloc[k] for kind in kinds]
        first, second = records[0]["first"], records[0]["second"]
        costs = pair_cost_texts(material.designs[first], material.designs[second]) if costly else []
        texts = [f"{second} - {first}", *costs, signed(records[-1]["difference"])]
        rows.append([*map(Cell, texts), *[cell(record, settings) for record in records]])
    header = ["Pair (second - first)", *(PAIR_COST_HEADER if costly else []), MEAN]
    header += [f"{kind} (n = {pairs['n_pairs'].iloc[k * total]})" for k, kind in enumerate(kinds)]
    rest = f"The first {len(rows)} of {total} pairs; pairs.csv has all." if total > len(rows) else ""
    return Grid("pairs", caption, header, rows, rest=rest, title="Pairs of designs")


def _pair_cell(row: pd.Series, settings: Settings) -> Cell:
    """Difference, mark, corrected p; where alpha is out of reach, the smallest p that so many tasks allow instead."""
    n = row["n_pairs"] - row["n_zero"]
    fewer = f" at n = {n}" if row["n_zero"] else ""  # without zeros the head of the column says n
    text = signed(row["hodges_lehmann"])
    raw_only = "(*)" if passes(row["p"], settings.alpha) else ""
    if row["reachable"] == "no":
        return Cell(text, below=(f"n.a.: p >= {fraction(row['p_min'])}{fewer}",))
    if row["reachable"] == "uncorrected":
        floor = f"n.a.: p >= {fraction(row['p_min_adjusted'])}{fewer}"
        return Cell(text, mark=raw_only, below=(floor, f"raw {fraction(row['p'])}"))
    return Cell(text, mark="*" if row["significant"] else raw_only, below=(fraction(row["p_adjusted"]),))


def pair_caption(material: Material) -> str:
    """Name the test, its options, the correction, the family and the marks."""
    settings, pairs = material.settings, material.pairs
    alpha, corrected = fraction(settings.alpha), settings.correction != "none"
    legend = [f"* = p at most {alpha}" + (" after the correction" if corrected else "")]
    if corrected:
        legend.append(f"(*) = at most {alpha} only before it")
    if (pairs["reachable"] != "yes").any():
        raw = ", and p before the correction (raw)" if (pairs["reachable"] == "uncorrected").any() else ""
        least = f"then the smallest p that they allow is given{raw}"
        legend.append(f"n.a. = {unreachable_text(pairs, settings)}; {least}")
    return (
        f"{typical_text(pairs, settings)}, with the p-value of the {signed_rank_text(pairs, settings)};"
        f" {correction_text(pairs, settings)}. {'; '.join(legend)}. {mean_text(pairs)}"
    )


def paper_grid(material: Material) -> Grid:
    """One row per pair, one column per type: the difference of the test with its stars, no p."""
    return pairs_by_type(material, _starred, paper_caption(material))


def star_levels(alpha: float) -> list[float]:
    """Return the levels of *, ** and ***: alpha, then the usual ones below it."""
    return [alpha, *[level for level in STARS if level < alpha * (1 - 1e-9)]][:3]


def _starred(row: pd.Series, settings: Settings) -> Cell:
    stars = "*" * sum(bool(passes(row["p_adjusted"], level)) for level in star_levels(settings.alpha))
    before = DAGGER if not stars and passes(row["p"], settings.alpha) else ""
    closed = " n.a." if row["reachable"] != "yes" else ""
    return Cell(signed(row["hodges_lehmann"]), mark=stars or ",".join(filter(None, (before, closed))))


def paper_caption(material: Material) -> str:
    """Name the test, its sidedness, the zeros, the correction, the family and the marks."""
    settings, pairs = material.settings, material.pairs
    levels = [f"{'*' * (k + 1)} p at most {fraction(v)}" for k, v in enumerate(star_levels(settings.alpha))]
    corrected = settings.correction != "none"
    legend = [", ".join(levels) + (" after the correction" if corrected else "")]
    if corrected:
        legend.append(f"{DAGGER} at most {fraction(settings.alpha)} only before it")
    if (pairs["reachable"] != "yes").any():
        legend.append(f"n.a. {unreachable_text(pairs, settings)}")
    return (
        f"{typical_text(pairs, settings)}, by task type. Stars: {signed_rank_text(pairs, settings)};"
        f" {correction_text(pairs, settings)}. {'; '.join(legend)}. {mean_text(pairs)}"
    )
