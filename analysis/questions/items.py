"""Tests within one task, over its items, where evaluate.py saved them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import fraction, percent
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import corrected, pair_places
from analysis.questions.question import Answer, Material
from analysis.questions.seeds import ends
from analysis.questions.tables import PAIR, Row, after_correction, filled, pair_name
from analysis.scores.items import Items
from analysis.settings import Settings
from analysis.statistics.items import ItemTest, compare_items

PLACE = 100
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
    results = [_compare(items, material) for items in material.items]
    tested = [result for result in results if isinstance(result, _Tested)]
    notes = [*(result for result in results if isinstance(result, str)), *_stale(tested, material)]
    if not tested:
        return Answer("items", notes=notes) if notes else None
    frame = _frame(tested, settings.of_other_tests)
    grid = _grid(frame.iloc[material.leading(frame)], tested, settings.of_other_tests)
    return Answer("items", methods=[METHODS], grids=[grid], frames={"items": frame}, notes=notes)


def _compare(items: Items, material: Material) -> _Tested | str:
    """Test the designs that have the items for the same seeds; a text says why that cannot be done."""
    have, name = {design for design, _ in items.values}, _named(items)
    designs = [design for design in material.designs if design in have]
    seeds = items.seeds_of(designs)
    if len(designs) < 2 or not seeds:
        return f"Items of {name}: no two designs have them for the same seed, so nothing is tested within this task."
    first, second = pair_places(designs, material.control)
    if not 0 < len(first) <= MOST_PAIRS:
        return f"Items of {name}: {len(first)} pairs; up to {MOST_PAIRS} are tested. Choose with models= or against=."
    test = compare_items(
        items.kind, items.table(designs, seeds), items.truth, first, second, level=1 - material.settings.alpha
    )
    return _Tested(items, designs, seeds, first, second, test)


def _named(items: Items) -> str:
    return f"{items.task} [{items.subset}]" if items.subset else items.task


def _stale(tested: list[_Tested], material: Material) -> list[str]:
    """Name the tasks whose items do not add up to the score in the tables, which other data or weights would do."""
    odd = []
    for one in tested:
        task, kind = one.items.task, one.items.kind
        if one.items.subset or kind == "average_precision":  # the score is the best of several, or a mean
            continue
        rows = material.frame[(material.frame["task"] == task) & material.frame["seed"].isin(one.seeds)]
        scores = rows.groupby("design")["score"].mean()[one.designs].to_numpy()
        if not np.allclose(scores, one.test.value, atol=ACCURACY, rtol=0):
            odd.append(task)
    stale = f"The items of {listed(odd)} do not give the score in the tables; score again with predictions=true."
    return [stale] if odd else []


def _frame(tested: list[_Tested], settings: Settings) -> pd.DataFrame:
    """One row a (task, pair), every digit; the correction is over the pairs of one task."""
    parts = []
    for one in tested:
        names, items, test = np.array(one.designs, dtype=object), one.items, one.test
        columns: dict[str, Any] = {"type": _named(items), "task_type": items.type, "statistic": items.statistic}
        columns |= {"first": names[one.first], "second": names[one.second]}
        columns |= {"n_items": len(items.ids), "n_seeds": len(one.seeds)}
        columns |= {"score_first": test.value[one.first], "score_second": test.value[one.second]}
        columns |= {"difference": test.difference, "low_items": test.interval[:, 0], "high_items": test.interval[:, 1]}
        columns |= {"p": test.p, "p_min": test.p_min, "draws": test.flips, "exact": test.exact}
        parts.append(pd.DataFrame(columns))
    table = corrected(pd.concat(parts, ignore_index=True), replace(settings, family="type"))
    return table.rename(columns={"type": "task"})


def _grid(frame: pd.DataFrame, tested: list[_Tested], settings: Settings) -> Grid:
    def cells(row: Row) -> list[Cell]:
        below = () if settings.correction == "none" else (fraction(row["p_adjusted"]),)
        texts = [row["task"], pair_name(row), row["statistic"], str(row["n_items"])]
        texts += [settings.numbers.signed(row["difference"]), ends(row, "items", settings.numbers)]
        return [*map(Cell, texts), Cell(fraction(row["p"]), below=below)]

    header = ["Task", PAIR, "Score", "Items", "Difference", f"{percent(settings.alpha)} items", "p"]
    grid = Grid("items", _caption(tested, settings), header, left=3, title="Within one task")
    return filled(grid, frame, cells, settings.rows_shown, "rows, those of the highest means; items.csv has all.")


def _caption(tested: list[_Tested], settings: Settings) -> str:
    """Name the tests that were done, and what they do not say."""
    means = [one.test for one in tested if one.items.kind == "mean"]
    others = [one.test for one in tested if one.items.kind != "mean"]
    tests = [f"of a mean over items by swapping the two designs on an item ({_draws(means)})"] if means else []
    if others:
        tests.append(f"of a rank statistic by swapping the two designs' ranks of an item ({_draws(others)})")
    corrects = after_correction(settings)
    after = f", in brackets{corrects} over the pairs of one task" if corrects else ""
    return (
        "Differences within one task, over its items (queries, pairs of texts, texts), the scores of an item averaged"
        f" over seeds: p of the two-sided paired permutation test {', '.join(tests)}{after};"
        f" {percent(settings.alpha)} percentile bootstrap"
        " of the items. A row generalises to further items of this task, not to other tasks and not to other seeds, so"
        " that none has a star."
    )


def _draws(tests: list[ItemTest]) -> str:
    fewest = min(test.flips for test in tests)
    return "exact" if all(test.exact for test in tests) else f"{fewest:,} random swaps"
