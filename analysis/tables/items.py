"""Tests within one task, over its items, where evaluate.py saved them: `tables=[items]`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.formats import count_of, level, p_text
from analysis.names import listed
from analysis.render import Section
from analysis.scores.items import Items, read_items
from analysis.statistics.arrays import Ints
from analysis.statistics.items import ItemTest, compare_items
from analysis.tables.compared_pairs import holm_within, pair_places
from analysis.tables.comparison import Comparison

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


def section(compared: Comparison) -> Section:
    """Return the pairs tested over the items of every task that has them."""
    every = read_items(compared.frame, compared.settings.items)
    results = [_compare(items, compared) for items in every]
    tested = [result for result in results if isinstance(result, _Tested)]
    notes = [
        *(result for result in results if isinstance(result, str)),
        *_stale(tested, compared),
        *_partial(tested, compared),
    ]
    if not tested:
        return Section("items", "Within one task", notes=notes or ["There are no item files beside these scores."])
    frame = _frame(tested)
    rows, unit = frame.iloc[compared.leading(frame)], compared.unit
    shown = pd.DataFrame(
        {
            "Task": rows["task"],
            "Pair": compared.pair_texts(rows),
            "Score": rows["statistic"],
            "Items": rows["n_items"],
            "Difference": rows["difference"].map(unit.signed),
            f"{level(compared.settings.alpha)} interval": list(
                map(unit.interval, rows["low_items"], rows["high_items"])
            ),
            "p": rows["p"],
            "Holm": rows["p_holm"],
        }
    ).reset_index(drop=True)
    caption = (
        "Differences within one task over its items (queries, pairs of texts, texts): paired permutation test, Holm"
        " over the pairs of the task, bootstrap interval. They hold for further items of this task, not for other tasks"
        " or seeds."
    )
    table = compared.table("items", "Within one task", caption, shown, formats={"p": p_text, "Holm": p_text}, left=3)
    return Section("items", "Within one task", [table], frames={"items": frame}, notes=notes)


def _compare(items: Items, compared: Comparison) -> _Tested | str:
    """Test the designs that have the items for the same seeds; a text says why that cannot be done."""
    have, name = {design for design, _ in items.values}, _named(items)
    designs = [design for design in compared.designs if design in have]
    seeds = items.seeds_of(designs)
    if len(designs) < 2 or not seeds:
        return f"Items of {name}: no two designs have them for the same seed, so nothing is tested within this task."
    first, second = pair_places(designs, compared.control)
    if not 0 < len(first) <= MOST_PAIRS:
        return f"Items of {name}: {len(first)} pairs; up to {MOST_PAIRS} are tested. Choose with models= or against=."
    values, confidence = items.table(designs, seeds), 1 - compared.settings.alpha
    test = compare_items(items.kind, values, items.truth, first, second, level=confidence)
    return _Tested(items, designs, seeds, first, second, test)


def _named(items: Items) -> str:
    return f"{items.task} [{items.subset}]" if items.subset else items.task


def _stale(tested: list[_Tested], compared: Comparison) -> list[str]:
    """Name the tasks whose items do not add up to the score in the tables, which other data or weights would do."""
    odd = []
    for one in tested:
        task = one.items.task
        if one.items.subset:  # the score is a mean of several
            continue
        rows = compared.frame[(compared.frame["task"] == task) & compared.frame["seed"].isin(one.seeds)]
        scores = rows.groupby("design")["score"].mean()[one.designs].to_numpy()
        if not np.allclose(scores, one.test.value, atol=ACCURACY, rtol=0):
            odd.append(task)
    stale = f"The items of {listed(odd)} do not give the score in the tables; score again with predictions=true."
    return [stale] if odd else []


def _partial(tested: list[_Tested], compared: Comparison) -> list[str]:
    """Name the tasks where designs or seeds of the tables have no items."""
    designs, seeds = len(compared.designs), compared.frame["seed"].nunique()
    few = [one for one in tested if len(one.designs) < designs or len(one.seeds) < seeds]
    sizes = [f"{_named(x.items)} ({len(x.designs)} designs, {count_of(len(x.seeds), 'seed')})" for x in few]
    of = f"{count_of(designs, 'design')} and {count_of(seeds, 'seed')}"
    return [f"Tested with what has items, of {of}: {listed(sizes)}."] if few else []


def _frame(tested: list[_Tested]) -> pd.DataFrame:
    """One row a (task, pair), every digit; Holm is over the pairs of one task."""
    parts = []
    for one in tested:
        names, items, test = np.array(one.designs, dtype=object), one.items, one.test
        columns: dict[str, Any] = {"task": _named(items), "task_type": items.type, "statistic": items.statistic}
        columns |= {"first": names[one.first], "second": names[one.second]}
        columns |= {"n_items": len(items.ids), "n_seeds": len(one.seeds)}
        columns |= {"score_first": test.value[one.first], "score_second": test.value[one.second]}
        columns |= {"difference": test.difference, "low_items": test.interval[:, 0], "high_items": test.interval[:, 1]}
        columns |= {"p": test.p, "p_min": test.p_min, "draws": test.flips}
        parts.append(pd.DataFrame(columns))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(p_holm=holm_within(table["p"], table["task"]))
