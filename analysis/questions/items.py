"""Tests within one task, over its items, where evaluate.py saved them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import fraction, percent, signed
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import corrected
from analysis.questions.question import Answer, Material
from analysis.questions.seeds import ends
from analysis.scores.items import Items, read_items
from analysis.settings import Settings
from analysis.statistics.correction import correction_name, passes
from analysis.statistics.items import ItemTest, compare_items

PLACE = 180
METHODS = (
    "Within single tasks designs were compared over the task's items by swapping the two designs on an item"
    " [@pitman1937]."
)

MOST_PAIRS = 300
ACCURACY = 1e-4  # mteb rounds means to five digits


@dataclass(frozen=True)
class _Tested:
    """One task: the designs and seeds that have its items, and what the test found."""

    items: Items
    designs: list[str]
    seeds: list[str]
    first: np.ndarray
    second: np.ndarray
    test: ItemTest


def answer(material: Material) -> Answer | None:
    """Return the pairs tested over the items of every task that has them, or None where none has."""
    settings = material.settings
    if settings.items == "none":
        return None
    found = read_items(material.frame, settings.items)
    tested, notes = [], []
    for items in found:
        result = _compare(items, material)
        notes += [result] if isinstance(result, str) else []
        tested += [result] if isinstance(result, _Tested) else []
    notes += _stale(tested, material)
    if not tested:
        return Answer("items", notes=notes) if notes else None
    frame = _frame(tested, settings)
    return Answer(
        "items", methods=[METHODS], grids=[_grid(frame, tested, settings)], frames={"items": frame}, notes=notes
    )


def _compare(items: Items, material: Material) -> _Tested | str:
    """Test the designs that have the items for the same seeds; a text says why that cannot be done."""
    designs = [design for design in material.designs if any(held == design for held, _ in items.values)]
    own = {design: {seed for held, seed in items.values if held == design} for design in designs}
    seeds = sorted(set.intersection(*own.values()), key=lambda seed: (len(seed), seed))
    name = _named(items)
    if len(designs) < 2 or not seeds:
        return f"Items of {name}: no two designs have them for the same seed, so nothing is tested within this task."
    first, second = np.triu_indices(len(designs), k=1)
    if material.control:
        held = np.array([material.control in (designs[i], designs[j]) for i, j in zip(first, second, strict=True)])
        first, second = first[held], second[held]
    if not 0 < len(first) <= MOST_PAIRS:
        return f"Items of {name}: {len(first)} pairs; up to {MOST_PAIRS} are tested. Choose with models= or against=."
    values = np.array([[items.values[design, seed] for seed in seeds] for design in designs])
    test = compare_items(items.kind, values, items.truth, first, second, level=1 - material.settings.alpha)
    return _Tested(items, designs, seeds, first, second, test)


def _named(items: Items) -> str:
    return f"{items.task} [{items.subset}]" if items.subset else items.task


def _stale(tested: list[_Tested], material: Material) -> list[str]:
    """Name the tasks whose items do not add up to the score in the tables, which other data or weights would do."""
    odd = []
    for one in tested:
        if one.items.subset or one.items.kind == "average_precision":  # the score is the best of several, or a mean
            continue
        own = material.frame[(material.frame["task"] == one.items.task) & material.frame["seed"].isin(one.seeds)]
        scores = own.groupby("design")["score"].mean()[one.designs].to_numpy()
        if not np.allclose(scores, one.test.value, atol=ACCURACY, rtol=0):
            odd.append(one.items.task)
    return [
        f"The items of {listed(odd)} do not give the score in the tables; score again with predictions=true."
    ] * bool(odd)


def _frame(tested: list[_Tested], settings: Settings) -> pd.DataFrame:
    """One row a (task, pair), every digit; the correction is over the pairs of one task."""
    parts = []
    for one in tested:
        names, test = np.array(one.designs, dtype=object), one.test
        columns: dict[str, Any] = {
            "type": _named(one.items),
            "task_type": one.items.type,
            "statistic": one.items.statistic,
        }
        columns |= {"first": names[one.first], "second": names[one.second], "n_items": len(one.items.ids)}
        columns |= {"n_seeds": len(one.seeds), "score_first": test.value[one.first]}
        columns |= {"score_second": test.value[one.second], "difference": test.difference}
        columns |= {"low_items": test.interval[:, 0], "high_items": test.interval[:, 1]}
        columns |= {"p": test.p, "p_min": test.p_min, "draws": test.draws, "exact": test.exact}
        parts.append(pd.DataFrame(columns))
    table = corrected(pd.concat(parts, ignore_index=True), replace(settings, family="type"))
    return table.rename(columns={"type": "task"})


def _grid(frame: pd.DataFrame, tested: list[_Tested], settings: Settings) -> Grid:
    cells = []
    for _, row in frame.head(settings.rows_shown).iterrows():
        mark = "*" if row["significant"] else "(*)" if passes(np.array(row["p"]), settings.alpha) else ""
        below = () if settings.correction == "none" else (fraction(row["p_adjusted"]),)
        texts = [row["task"], f"{row['second']} - {row['first']}", row["statistic"], str(row["n_items"])]
        texts += [signed(row["difference"]), ends(row, "items")]
        cells.append([*map(Cell, texts), Cell(fraction(row["p"]), mark=mark, below=below)])
    header = ["Task", "Pair (second - first)", "Score", "Items", "Difference", f"{percent(settings.alpha)} items", "p"]
    rest = f"The first {len(cells)} of {len(frame)} rows; items.csv has all." if len(frame) > len(cells) else ""
    return Grid("items", _caption(tested, settings), header, cells, 3, rest, title="Within one task")


def _caption(tested: list[_Tested], settings: Settings) -> str:
    """Name the tests that were done, and what they do not say."""
    means = [one.test for one in tested if one.items.kind == "mean"]
    others = [one.test for one in tested if one.items.kind != "mean"]
    tests = [f"of a mean over items by swapping the two designs on an item ({_draws(means)})"] if means else []
    if others:
        tests.append(f"of a rank statistic by swapping the two designs' ranks of an item ({_draws(others)})")
    name = correction_name(settings.correction)
    after = f", in brackets after {name} over the pairs of one task" if settings.correction != "none" else ""
    marked = " after the correction, (*) = only before it" if settings.correction != "none" else ""
    return (
        "Differences within one task, over its items (queries, pairs of texts, texts), the scores of an item averaged"
        f" over seeds: p of the two-sided paired permutation test {', '.join(tests)}{after};"
        f" {percent(settings.alpha)} percentile bootstrap"
        " of the items. A row generalises to further items of this task, not to other tasks and not to other seeds."
        f" * = at most {fraction(settings.alpha)}{marked}."
    )


def _draws(tests: list[ItemTest]) -> str:
    fewest = min(test.draws for test in tests)
    return "exact" if all(test.exact for test in tests) else f"{fewest:,} random swaps"
