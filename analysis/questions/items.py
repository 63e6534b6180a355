"""Tests within one task, over its items, where evaluate.py saved them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import holm_within, pair_places
from analysis.questions.question import Answer, Material
from analysis.questions.tables import PAIR, Row, filled, p_cell, pair_name
from analysis.scores.items import Items
from analysis.settings import Settings
from analysis.statistics.arrays import Ints
from analysis.statistics.items import ItemTest, compare_items

PLACE = 100
TESTED = ("mean", "spearman")  # kinds of statistics over items
MOST_PAIRS = 300
ACCURACY = 1e-4  # mteb rounds means to five digits


@dataclass(frozen=True)
class _Tested:
    """One task: the designs and seeds that have its items, and what the test found."""

    items: Items
    designs: list[str]
    seeds: list[str]
    first: Ints
    second: Ints
    test: ItemTest


def answer(material: Material) -> Answer | None:
    """Return the pairs tested over the items of every task that has them, or None where none has."""
    results = [_compare(items, material) for items in material.items if items.kind in TESTED]
    tested = [result for result in results if isinstance(result, _Tested)]
    notes = [*(result for result in results if isinstance(result, str)), *_stale(tested, material)]
    others = [_named(items) for items in material.items if items.kind not in TESTED]
    notes += [f"Not tested over items, for want of a mean or a correlation: {listed(others)}."] if others else []
    if not tested:
        return Answer("items", notes=notes) if notes else None
    frame = _frame(tested)
    grid = _grid(frame.iloc[material.leading(frame)], material.settings)
    return Answer("items", grids=[grid], frames={"items": frame}, notes=notes)


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
    values, level = items.table(designs, seeds), 1 - material.settings.alpha
    return _Tested(
        items, designs, seeds, first, second, compare_items(items.kind, values, items.truth, first, second, level=level)
    )


def _named(items: Items) -> str:
    return f"{items.task} [{items.subset}]" if items.subset else items.task


def _stale(tested: list[_Tested], material: Material) -> list[str]:
    """Name the tasks whose items do not add up to the score in the tables, which other data or weights would do."""
    odd = []
    for one in tested:
        task = one.items.task
        if one.items.subset:  # the score is a mean of several
            continue
        rows = material.frame[(material.frame["task"] == task) & material.frame["seed"].isin(one.seeds)]
        scores = rows.groupby("design")["score"].mean()[one.designs].to_numpy()
        if not np.allclose(scores, one.test.value, atol=ACCURACY, rtol=0):
            odd.append(task)
    stale = f"The items of {listed(odd)} do not give the score in the tables; score again with predictions=true."
    return [stale] if odd else []


def _frame(tested: list[_Tested]) -> pd.DataFrame:
    """One row a (task, pair), every digit; the correction is over the pairs of one task."""
    parts = []
    for one in tested:
        names, items, test = np.array(one.designs, dtype=object), one.items, one.test
        columns: dict[str, Any] = {"task": _named(items), "task_type": items.type, "statistic": items.statistic}
        columns |= {"first": names[one.first], "second": names[one.second]}
        columns |= {"n_items": len(items.ids), "n_seeds": len(one.seeds)}
        columns |= {"score_first": test.value[one.first], "score_second": test.value[one.second]}
        columns |= {"difference": test.difference, "low_items": test.interval[:, 0], "high_items": test.interval[:, 1]}
        columns |= {"p": test.p, "p_min": test.p_min, "draws": test.flips, "exact": test.exact}
        parts.append(pd.DataFrame(columns))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(p_holm=holm_within(table["p"], table["task"]))


def _grid(frame: pd.DataFrame, settings: Settings) -> Grid:
    def cells(row: Row) -> list[Cell]:
        texts = [row["task"], pair_name(row), row["statistic"], str(row["n_items"])]
        ends = settings.numbers.interval(row["low_items"], row["high_items"])
        texts += [settings.numbers.signed(row["difference"]), ends]
        return [*map(Cell, texts), p_cell(row)]

    caption = (
        "Differences within one task, over its items (queries, pairs of texts, texts), the scores of an item averaged"
        " over seeds: p of the two-sided paired permutation test, which swaps the two designs on an item (of a rank"
        " correlation their ranks), corrected over the pairs of one task; percentile bootstrap of the items. A row"
        " generalises to further items of this task, not to other tasks and not to other seeds, so that none has a"
        " star."
    )
    header = ["Task", PAIR, "Score", "Items", "Difference", f"{percent(settings.alpha)} items", "p"]
    grid = Grid("items", caption, header, left=3, title="Within one task")
    return filled(grid, frame, cells, settings.rows_shown, "rows, those of the highest means; items.csv has all.")
