"""The order of designs on another base, on other data, or at another length of training.

docs/decisions/design-by-type.md says what alike and opposite take.
"""

from itertools import product

import numpy as np
import pandas as pd

from analysis.grids.formats import equals
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import compare_pairs, corrected_pairs, seed_cube
from analysis.questions.crossings import Crossing, factor_table, varying
from analysis.questions.question import Answer, Material
from analysis.questions.tables import PAIR, claims, marked_cell, rest_text, star_legend
from analysis.questions.tested_effects import effect_tests
from analysis.settings import Settings
from analysis.statistics.correction import passes
from analysis.statistics.seeds import FEWEST_SEEDS
from records.identity import below

PLACE = 47
CONDITIONS = ("model", "data", "trainer.max_steps")  # these keys, or one below them: the first that varies
ALIKE, OPPOSITE, NOT_TOLD = "told alike", "told opposite", "not told on all"
MOST_NAMED = 4
METHODS = (
    "Whether differences between designs depend on a condition (base, data, length of training) was tested as the"
    " interaction of design and condition, and the pairs on each of its levels were corrected together."
)


def answer(material: Material) -> Answer | None:
    """Return the test of design x condition and the pairs on each level; None without two designs on two levels."""
    crossing, settings = crossing_of(material), material.settings.of_other_tests
    if crossing is None:
        return None
    (condition, levels), kind = next(iter(crossing.levels.items())), material.last
    matrix = material.matrix.loc[material.blocks[kind], crossing.designs]
    scores, of_seeds = matrix.to_numpy(dtype=np.float64), seed_cube(material.frame, matrix)
    test = effect_tests({kind: scores}, crossing, settings, {kind: of_seeds}).iloc[-1]
    pairs = pairs_by_level(material, matrix, crossing, settings)
    sentence = _sentence(pairs, condition, levels, test, settings)
    rows, signed = [], settings.numbers.signed
    for pair, of_levels in pairs.groupby("pair", sort=False):
        tested = [marked_cell(signed(row["difference"]), row, settings) for row in of_levels.to_dict("records")]
        rows.append([Cell(str(pair)), *tested, Cell(of_levels["outcome"].iloc[0])])
    caption = (
        f"Mean difference of two designs by {condition} over {material.over}, and below it p of the two-sided"
        f" signed-rank test, corrected over the {len(pairs)} of this table. {star_legend(pairs, settings)}. {ALIKE}: on"
        f" each, with one sign; {OPPOSITE}: with both signs. {sentence}"
    )
    shown, rest = settings.rows_shown, rest_text(settings.rows_shown, len(rows), "pairs; same_order.csv has all.")
    head, title = [PAIR, *(f"{condition} = {level}" for level in levels), "Order"], f"Order of designs by {condition}"
    asked = zip(material.pairs["first"], material.pairs["second"], strict=True)
    return Answer(
        "same_order",
        grids=[Grid("same-order", caption, head, rows[:shown], rest=rest, title=title)],
        frames={"same_order": pairs},
        about=dict.fromkeys(asked, sentence),
        methods=[METHODS],
        facts={"same_order": {"factor": condition, "levels": levels, **test.to_dict()}},
        of_designs=False,
    )


def crossing_of(material: Material) -> Crossing | None:
    """Return condition x design over the designs that every level of the condition has; None without two of each."""
    factors = varying(factor_table(material.designs))
    condition = next((name for name in factors if below(name, CONDITIONS)), None)
    crossing = None if condition is None or factors.shape[1] < 2 else crossed(factors, condition)
    return crossing if crossing and len(crossing.levels["design"]) > 1 else None


def crossed(factors: pd.DataFrame, condition: str) -> Crossing | None:
    """Return condition x design over the designs, by their other factors, that every level of the condition has; None
    where two designs are alike. factors: designs x factors, as `varying` returns them."""
    if factors.duplicated().any():
        return None
    names = factors.drop(columns=condition).agg(lambda row: "-".join(filter(None, row)), axis=1)
    label = dict(zip(zip(factors[condition], names, strict=True), map(str, factors.index), strict=True))
    levels = list(dict.fromkeys(factors[condition]))
    cells = [name for name in dict.fromkeys(names) if all((level, name) in label for level in levels)]
    return Crossing({condition: levels, "design": cells}, {}, [label[cell] for cell in product(levels, cells)])


def pairs_by_level(material: Material, matrix: pd.DataFrame, crossing: Crossing, settings: Settings) -> pd.DataFrame:
    """Return the pairs of two designs on one level, corrected together; `outcome`: of a pair on all levels."""
    levels, cells = crossing.levels.values()
    pairs = material.pairs_on(material.last)
    order = material.matrix.columns.get_indexer(crossing.designs).reshape(len(levels), -1)
    if material.control or (np.diff(order) < 0).any():  # not all were compared, or not in one direction
        pairs = compare_pairs(matrix, {material.last: list(matrix.index)}, settings, frame=material.frame)
    names = dict(zip(crossing.designs, product(levels, cells), strict=True))
    level, other = (pairs[end].map(lambda label: names.get(label, ("",))[0]) for end in ("first", "second"))
    pairs = corrected_pairs(pairs[(level == other) & (level != "")].reset_index(drop=True), settings)
    (level, one), (_, two) = (zip(*pairs[end].map(names), strict=True) for end in ("first", "second"))
    pairs = pairs.assign(level=level, pair=[f"{b} - {a}" for a, b in zip(one, two, strict=True)])
    ways = pairs["ahead"].where(pairs["told"], 0).groupby(pairs["pair"])
    low, high = ways.transform("min"), ways.transform("max")
    return pairs.assign(outcome=np.select([low * high < 0, low * high > 0], [OPPOSITE, ALIKE], NOT_TOLD))


def _sentence(
    pairs: pd.DataFrame, condition: str, levels: list[str], test: "pd.Series[float]", settings: Settings
) -> str:
    """Return in one line whether the order depends on the condition, and which pairs are told how."""
    over = f"p {equals(test['p'])} over tasks"
    if not claims(pairs):
        return f"Design x {condition}: {over}; no claim about designs."
    told = passes(np.array([test["p"], test["p_seeds"]]), settings.alpha).all()
    enough = test["n_seeds"] >= FEWEST_SEEDS
    seeds = f"p {equals(test['p_seeds'])} over tasks and {test['n_seeds']} seeds" if enough else "too few common seeds"
    of_pairs = pairs.drop_duplicates("pair").groupby("outcome")["pair"].agg(list)
    parts = [f"{kind} {listed(of_pairs.get(kind, ['none']), MOST_NAMED)}" for kind in (ALIKE, OPPOSITE)]
    return (
        f"Differences between designs {'are' if told else 'are not'} told to depend on {condition} ({listed(levels)};"
        f" {over}, {seeds}). Their order:"
        f" {'; '.join(parts)}; {NOT_TOLD} {len(of_pairs.get(NOT_TOLD, []))} of {pairs['pair'].nunique()} pairs."
    )
