"""For every pair: told apart, equivalent within the margin, or not told."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import Numbers, equals, fraction, percent, score
from analysis.grids.grid import Cell, Grid
from analysis.questions.compared_pairs import corrected
from analysis.questions.pair_texts import family_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, after_correction, claims, filled, p_cell, pair_name
from analysis.settings import Settings
from analysis.statistics.arrays import Floats
from analysis.statistics.equivalence import equivalence, mean_posterior, one_sided
from analysis.statistics.seeds import FEWEST_SEEDS, SeedMeans, outside

PLACE = 70
METHODS = (
    "Two designs were called equivalent within {rope} where two one-sided signed-rank tests [@schuirmann1987] of"
    " their differences, shifted by that margin either way, both passed after the same correction, and two of the mean"
    " over tasks and seeds did; pairs neither told apart nor equivalent are not told. The posterior of a mean"
    " difference is Student's, with the prior of Jeffreys [@box1973]."
)

TOLD, EQUIVALENT, NOT_TOLD = "told apart", "equivalent", "not told"  # a text adds the margin to the second
SURE = 0.95
STEP, WIDEST = 0.0005, 0.1  # margins tried
MOST_PAIRS = 300  # whose smallest margin is sought
# The columns that sentences take.
SAID = ["first", "second", "told_apart", "within_margin", "reachable", "p_adjusted", "p_min_adjusted"]
SAID += ["n_seeds", "p_seeds_adjusted"]
FEWEST = 6  # tasks: below it a probability is never bold


def answer(material: Material) -> Answer:
    """Return the table `equivalence` for the last block (all tasks); equivalence.csv has all."""
    settings, table = material.settings.of_other_tests, equivalence_table(material)
    last = table[table["type"] == material.last]
    return Answer(
        "equivalence",
        methods=[METHODS.format(rope=settings.numbers.margin(settings.rope))],
        grids=[equivalence_grid(last.iloc[material.leading(last)], settings)],
        frames={"equivalence": _for_file(table, settings)},
        notes=_notes(last, settings),
        about={(row["first"], row["second"]): _sentence(row, settings) for row in last[SAID].to_dict("records")},
    )


def within(settings: Settings) -> str:
    """Return "equivalent within .005": the margin is stated wherever the word is said."""
    return f"{EQUIVALENT} within {settings.numbers.margin(settings.rope)}"


def equivalence_table(material: Material) -> pd.DataFrame:
    """Return one row per (type, pair): the tests of equivalence, corrected as those of the pairs are, and `outcome`.

    `outcome`: told apart where the difference is `told` of the designs, else equivalent where both tests at the margin
    pass over tasks and over tasks and seeds, else not told. `within_margin` says the latter of pairs told apart, too.
    `smallest_margin`, of pairs on the last block: see `_smallest_margins`.
    """
    table = equivalence_tests(material, material.settings.rope, list(material.blocks)).drop(columns="significant")
    table = table.rename(columns={"told": "within_margin"})
    table.loc[table["type"] == material.last, "smallest_margin"] = _smallest_margins(material)
    outcomes = np.where(table["within_margin"], EQUIVALENT, NOT_TOLD)
    return table.assign(outcome=np.where(table["told_apart"], TOLD, outcomes))


def _smallest_margins(material: Material) -> Floats:
    """Return for each pair of the last block the smallest multiple of STEP at which it would be equivalent.

    It is nan where WIDEST is not enough, or pairs are too many; with fewer than three seeds the tests over tasks decide
    alone. All p of the family fall with the margin, so margins are halved towards each pair's.
    """
    alone, count, most = material.settings.family == "type", len(material.pairs_on(material.last)), round(WIDEST / STEP)
    if count > MOST_PAIRS:
        return np.full(count, np.nan)
    kinds = [material.last] if alone else list(material.blocks)
    p_at = {kind: _bounded_p(material, kind) for kind in kinds}
    low, high = np.zeros(count, dtype=np.int64), np.full(count, most + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        for steps in np.unique(middle[high - low > 1]).tolist():
            tests = equivalence_tests(material, steps * STEP, kinds, {kind: p_at[kind](steps) for kind in kinds})
            tests = tests[tests["type"] == material.last]
            passed = np.where(tests["n_seeds"] >= FEWEST_SEEDS, tests["told"], tests["significant"]).astype(bool)
            here = (middle == steps) & (high - low > 1)
            high[here & passed], low[here & ~passed] = steps, steps
    return np.where(high <= most, high * STEP, np.nan)


def _bounded_p(material: Material, kind: str) -> Callable[[int], Floats]:
    """Return the function from a margin, in steps, to p [P] of the pairs of a block, which lets the same tests pass.

    A p above alpha passes in no family and changes none, and one below alpha over the family's size passes in every
    one. So where a smaller margin gave a p twice as large as the first, it stands as 1, and where a larger one gave
    half of the second, as 0: ties let p rise with the margin, by less than that.
    """
    settings, differences = material.settings.of_other_tests, material.differences(kind)
    hopeless, surely = 2 * settings.alpha, settings.alpha / 2 / len(material.pairs)
    fails, passes = np.full(len(differences), -1), np.full(len(differences), np.iinfo(np.int64).max)

    def p_at(steps: int) -> Floats:
        p = np.where(steps <= fails, 1.0, 0.0)
        open_rows = np.flatnonzero((steps > fails) & (steps < passes))
        open_ones, near = differences[open_rows], (2 * surely, settings.alpha)
        both = one_sided(open_ones, steps * STEP, settings.zeros, settings.decimals, near)
        p[open_rows] = np.maximum(*both)
        fails[open_rows[p[open_rows] > hopeless]] = steps
        passes[open_rows[p[open_rows] < surely]] = steps
        return p

    return p_at


def equivalence_tests(
    material: Material, margin: float, kinds: list[str], p: Mapping[str, Floats] | None = None
) -> pd.DataFrame:
    """Return the corrected tests of equivalence within a margin, one row per (type, pair).

    p: kind -> p over tasks [P] where it is known; it stands alone then, without p_min, intervals and posteriors.
    """
    settings, parts = material.settings.of_other_tests, []  # of non-equivalent pairs any number can be together
    for kind in kinds:
        rows = material.pairs_on(kind)
        columns: dict[str, Any] = {name: rows[name].to_numpy() for name in ("type", "first", "second")}
        columns |= {"n_tasks": len(material.blocks[kind]), "margin": margin, "told_apart": rows["told"].to_numpy()}
        if p is None:
            differences = material.differences(kind)
            columns |= vars(equivalence(differences, margin, settings.alpha, settings.zeros, settings.decimals))
            columns |= mean_posterior(differences, margin, settings.decimals)
        else:
            columns |= {"p": p[kind], "p_min": 0.0}
        seeds = SeedMeans(*(rows[name].to_numpy() for name in SeedMeans.__dataclass_fields__))
        columns |= {"n_seeds": seeds.n_seeds, "p_seeds": outside(seeds, margin)}
        parts.append(pd.DataFrame(columns))
    return corrected(pd.concat(parts, ignore_index=True), settings)


def _for_file(table: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Leave out what repeats p_holm, p_bh or p, and say the margin in the outcome."""
    words = table["outcome"].replace(EQUIVALENT, f"{EQUIVALENT} within {Numbers().margin(settings.rope)}")
    kept = table.drop(columns=["told_apart", "p_adjusted"]).assign(outcome=words)
    return kept.rename(columns={"p_min_adjusted": f"p_min_{settings.correction}"})


def _sentence(row: Row, settings: Settings) -> str:
    """Return the sentence that the tests of equivalence add to the verdict on one pair."""
    if row["n_seeds"] < FEWEST_SEEDS:
        return ""  # nothing is claimed of the designs, which the verdict has said
    after = after_correction(settings)
    both = f"over tasks and seeds p {equals(row['p_seeds_adjusted'])}"
    tests = f"two one-sided signed-rank tests, p {equals(row['p_adjusted'])}{after}; {both}"
    if row["told_apart"]:
        return f"The pair is {TOLD}, and yet {within(settings)} ({tests})." if row["within_margin"] else ""
    if row["within_margin"]:
        return f"The pair is {within(settings)} ({tests})."
    if row["reachable"] != "yes":
        least = f"the smallest p possible{after} is {fraction(row['p_min_adjusted'])}"
        return f"The pair is {NOT_TOLD}: so few tasks cannot show it to be {within(settings)} either ({least})."
    return f"The pair is {NOT_TOLD}: neither shown to differ nor to be {within(settings)} ({tests})."


def _notes(last: pd.DataFrame, settings: Settings) -> list[str]:
    counts = {name: int((last["outcome"] == name).sum()) for name in (TOLD, EQUIVALENT, NOT_TOLD)}
    small = int((last["told_apart"] & last["within_margin"]).sum())
    yet = f" ({small} of them {within(settings)} all the same)" if small else ""
    pairs = "pair" if len(last) == 1 else "pairs"
    few = (
        "" if claims(last) else f", as nothing is of designs with fewer than {FEWEST_SEEDS} seeds, copies counted once"
    )
    return [
        f"Of {len(last):,} {pairs} on {last['type'].iloc[0]}: {TOLD} {counts[TOLD]:,}{yet}, {within(settings)}"
        f" {counts[EQUIVALENT]:,}, {NOT_TOLD} {counts[NOT_TOLD]:,} (rope= is the margin; what is"
        f" {NOT_TOLD} is neither shown to differ nor to be {EQUIVALENT}{few})."
    ]


def equivalence_grid(table: pd.DataFrame, settings: Settings) -> Grid:
    """One row per pair of one block: the outcome, the interval, p, and three probabilities, bold from .95 on."""
    kind, n, numbers = table["type"].iloc[0], int(table["n_tasks"].iloc[0]), settings.numbers

    def cells(row: Row) -> list[Cell]:
        word = within(settings) if row["outcome"] == EQUIVALENT else row["outcome"]
        both = (within(settings),) if row["told_apart"] and row["within_margin"] else ()
        ends = Cell("n.a." if np.isinf(row["low"]) else numbers.interval(row["low"], row["high"]))
        probabilities = [_probability(row[name], n) for name in ("worse", "equivalent", "better")]
        margin = Cell("n.a." if np.isnan(row["smallest_margin"]) else numbers.score(row["smallest_margin"]))
        p = p_cell(row, settings, star=False)
        return [Cell(pair_name(row)), Cell(word, below=both), ends, margin, p, *probabilities]

    header = [
        PAIR,
        "Outcome",
        f"{percent(2 * settings.alpha)} HL",
        "Least margin",
        "p equivalent",
        "worse",
        "equivalent",
        "better",
    ]
    title = f"Practical equivalence of pairs, {kind}"
    grid = Grid("equivalence", _caption(table, kind, n, settings), header, title=title)
    return filled(grid, table, cells, settings.rows_shown, f"{OF_BEST}; equivalence.csv has all.")


def _probability(value: float, n: int) -> Cell:
    return Cell("-" if np.isnan(value) else score(value, 3), "best" if value >= SURE and n >= FEWEST else "")


def _caption(table: pd.DataFrame, kind: str, n: int, settings: Settings) -> str:
    in_unit = settings.numbers.margin
    margin, alpha, after = in_unit(settings.rope), fraction(settings.alpha), after_correction(settings)
    over, below = (f" over {family_text(table, settings)}", ", below it corrected") if after else ("", "")
    closed = " n.a.: so few tasks that it cannot be reached." if (table["reachable"] != "yes").any() else ""
    return (
        f"Pairs on {kind} (n = {n}), second minus first. Outcome: {TOLD}, where the table of pairs has a star;"
        f" {within(settings)}, where two one-sided signed-rank tests, of the differences shifted by the margin {margin}"
        f" (rope=) upwards and downwards, both pass at {alpha}{after}{over}, and so do two of the mean over tasks and"
        f" {FEWEST_SEEDS} seeds or more; else {NOT_TOLD}. p"
        f" equivalent: the larger p of the two{below}.{closed} HL: the {percent(2 * settings.alpha)} Hodges-Lehmann"
        " interval, which lies within the margin where both pass uncorrected. Least margin: at which the pair would be"
        f" equivalent, in steps of {in_unit(STEP)} (n.a.: beyond {in_unit(WIDEST)}). Worse, equivalent, better:"
        f" posterior probability that the mean difference is below -{margin}, within the margin, above {margin}"
        f" (Student's t about the mean, prior of Jeffreys), bold from {fraction(SURE)} on"
        f"{f', with fewer than {FEWEST} tasks never' if n < FEWEST else ''}; these are no p-values and not corrected."
    )
