"""The layout of a paper's significance table (Tang and Yang 2024, arXiv 2409.02727): differences with stars alone.

The paper stars mean differences; here a star stands on the Hodges-Lehmann difference, which the test is about, and the
mean has a column of its own.
"""

from typing import TYPE_CHECKING

from analysis.grids.formats import fraction, signed
from analysis.grids.grid import Cell, Grid
from analysis.settings import Settings
from analysis.statistics.correction import passes
from analysis.tables.pair_caption import correction_text, mean_text, signed_rank_text, typical_text, unreachable_text
from analysis.tables.pair_tables import pairs_by_type

if TYPE_CHECKING:
    import pandas as pd

    from analysis.analyse import Result

STARS = (0.05, 0.01, 0.001)
DAGGER = "†"


def paper_grid(result: "Result") -> Grid:
    """One row per pair, one column per type: the difference of the test with its stars, no p."""
    return pairs_by_type(result, _cell, paper_caption(result))


def star_levels(alpha: float) -> list[float]:
    """Return the levels of *, ** and ***: alpha, then the usual ones below it."""
    return [alpha, *[level for level in STARS if level < alpha * (1 - 1e-9)]][:3]


def _cell(row: "pd.Series", settings: Settings) -> Cell:
    stars = "*" * sum(bool(passes(row["p_adjusted"], level)) for level in star_levels(settings.alpha))
    before = DAGGER if not stars and passes(row["p"], settings.alpha) else ""
    closed = " n.a." if row["reachable"] != "yes" else ""
    return Cell(signed(row["hodges_lehmann"]), mark=stars or ",".join(filter(None, (before, closed))))


def paper_caption(result: "Result") -> str:
    """Name the test, its sidedness, the zeros, the correction, the family and the marks."""
    settings, pairs = result.settings, result.pairs
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
