"""Everything about each pair on all tasks together: sizes with intervals, the test, and the tests beside it."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from analysis.grids.formats import Numbers, fraction, percent, signed
from analysis.grids.grid import Cell, Grid
from analysis.questions.pair_texts import family_text, signed_rank_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, filled, pair_name
from analysis.statistics.cross_checks import RESAMPLED_PAIRS
from analysis.statistics.sign_flip import DRAWN_UP_TO, RANDOM_FLIPS
from analysis.statistics.sign_flip import SEED as FLIP_SEED
from analysis.statistics.wilcoxon import EXACT_UP_TO

PLACE = 120

HEADER = ["W+ (W-)", "n (zeros)", "p (Holm, BH)", "Permut. (p)", "Sign (p)", "t (p)", "r", "d_z"]


def answer(material: Material) -> Answer:
    """Return the table of the block `All`, or of the only type, and what a reader of pairs.csv must know."""
    settings, last = material.settings, material.pairs_on(material.last)
    level = f"({percent(settings.alpha)} CI)"
    header = [PAIR, f"Mean {level}", f"HL {level}", *HEADER]
    grid = Grid("pair-details", _caption(material, last), header, title="Each pair in detail")
    end = f"{OF_BEST}; pairs.csv has all, on every type."
    cells = partial(_row, numbers=settings.numbers)
    grid = filled(grid, last.iloc[material.leading(last)], cells, settings.rows_shown, end)
    return Answer("pair_details", grids=[grid], notes=_notes(material))


def _row(row: Row, numbers: Numbers) -> list[Cell]:
    """Return the row of a pair; values that belong together share a cell, so that the table fits a page."""
    return [
        Cell(pair_name(row)),
        Cell(numbers.signed(row["difference"]), below=_ends(row["mean_low"], row["mean_high"], numbers.signed)),
        Cell(numbers.signed(row["hodges_lehmann"]), below=_ends(row["hl_low"], row["hl_high"], numbers.signed)),
        Cell(f"{row['w_plus']:g}", below=(f"{row['w_minus']:g}",)),
        Cell(str(row["n_pairs"]), below=(str(row["n_zero"]),)),
        Cell(fraction(row["p"]), below=(fraction(row["p_holm"]), fraction(row["p_bh"]))),
        *[Cell("-" if np.isnan(row[p]) else fraction(row[p])) for p in ("p_permutation", "p_sign", "p_t")],
        Cell(_size(row["rank_biserial"]), below=_ends(row["rank_biserial_low"], row["rank_biserial_high"], _size)),
        Cell(_size(row["d_z"]), below=_ends(row["d_z_low"], row["d_z_high"], _size)),
    ]


def _size(value: float) -> str:
    """An effect size, which has no unit."""
    return "-" if np.isnan(value) else signed(value, 2)


def _ends(low: float, high: float, show: Callable[[float], str]) -> tuple[str, ...]:
    """The two ends, each on its line; n.a. where there is no finite one."""
    if not np.isfinite(low) and not np.isfinite(high):
        return ("n.a.",)
    return tuple(show(end) if np.isfinite(end) else "n.a." for end in (low, high))


def _caption(material: Material, last: pd.DataFrame) -> str:
    """Name every column: what it estimates or tests, and how."""
    settings, where = material.settings, last["type"].iloc[0]
    finite = last.loc[np.isfinite(last["hl_low"]), "hl_confidence"]
    attained = f"attained {100 * finite.min():.1f} %; it leaves out 0 exactly where the uncorrected test passes"
    if finite.empty:
        attained = "n.a.: so few tasks attain it with no finite interval"
    left_out = ", differences of zero left out" if settings.zeros == "wilcox" and (last["n_zero"] > 0).any() else ""
    n, flips = int(last["n_pairs"].iloc[0]), "normal curve"
    if last["permutation_exact"].iloc[0]:
        flips = "all sign patterns"
    elif n <= DRAWN_UP_TO:
        flips = f"{RANDOM_FLIPS:,} sign patterns, seed {FLIP_SEED}"
    return (
        f"Pairs on {where}, second minus first. Mean: mean difference, with Student's t interval over tasks."
        f" HL: Hodges-Lehmann, the median of the Walsh averages{left_out}, with the"
        f" {'exact ' if n <= EXACT_UP_TO else ''}interval of the test ({attained})."
        f" W+, W-, p and r: {signed_rank_text(last, settings)}."
        f" Holm, BH (Benjamini-Hochberg): that p corrected over {family_text(last, settings)}. Uncorrected checks,"
        f" two-sided: paired permutation test of the mean ({flips}), sign test, paired t test."
        " r: matched-pairs rank-biserial (W+ - W-) / (W+ + W-), with Wilson's interval for 3/4 of the tasks. d_z: mean"
        " over standard deviation, with the interval of the noncentral t distribution. All intervals are uncorrected."
    )


def _notes(material: Material) -> list[str]:
    pairs, notes, count = material.pairs, [], len(material.pairs_on(material.last))
    if count > RESAMPLED_PAIRS:
        notes.append(
            f"With more than {RESAMPLED_PAIRS} pairs (here {count:,}) the permutation test is left out; models= or"
            " against= bring it back."
        )
    open_ended = pairs.loc[np.isinf(pairs["hl_low"]), "type"].unique().tolist()
    if open_ended:
        notes.append(
            f"{', '.join(open_ended)}: so few tasks with a difference attain no distribution-free"
            f" {percent(material.settings.alpha)} interval, so the ends of the Hodges-Lehmann interval are infinite."
        )
    return notes
