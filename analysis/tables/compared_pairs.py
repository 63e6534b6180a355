"""Every pair of designs on every task type: the primary test over tasks and seeds, and Wilcoxon's over tasks beside it.

Holm's correction is over two families: the pairs on all tasks together, and the pairs on all types of task.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.settings import Settings
from analysis.statistics.arrays import Floats, Ints, rounded
from analysis.statistics.correction import holm, passes
from analysis.statistics.intervals import mean_and_error, student_reach, typical_difference
from analysis.statistics.power import components, detectable
from analysis.statistics.seeds import FEWEST_SEEDS, FEWEST_TASKS, Spreads, outside, pair_test, reach, spreads, two_sided
from analysis.statistics.wilcoxon import signed_rank

ALL = "All"
BOTH, TASKS_ONLY, NO = "over tasks and seeds", "over tasks only", "no"  # values of the column `significant`
Places = tuple[Ints, Ints]  # of the first and of the second design of each pair
TESTED = ["type", "first", "second", "mean_difference", "low", "high", "p", "p_holm", "p_wilcoxon", "p_wilcoxon_holm"]


def compare_pairs(
    matrix: pd.DataFrame,
    blocks: dict[str, list[str]],
    settings: Settings,
    control: str = "",
    frame: pd.DataFrame | None = None,
    *,
    named: int = 0,
) -> pd.DataFrame:
    """Return one row per (type, pair); with a `control` only the pairs that hold it.

    matrix: tasks x designs, designs in config order; blocks: type -> its tasks, the last one the main family; frame:
    long, the scores by seed. Columns, differences second minus first, scores between 0 and 1:
    `type, first, second, mean_difference`; `low, high`: its interval of level 1 - alpha, over tasks only where one of
    them has fewer than three seeds, or the type fewer than five tasks; `p, p_holm`: of the primary test, nan there;
    `p_wilcoxon, p_wilcoxon_holm`; `significant`: BOTH, TASKS_ONLY (Wilcoxon's Holm p passes alone) or NO. Then
    `p_equivalent, p_equivalent_holm, equivalent` within `rope`; `detectable` in four of five studies of these tasks and
    seeds at alpha / `family_size`, or / `named`, where so many of the pairs will be the family; the fields of
    `SeedTest`; those of `SignedRank`; the Hodges-Lehmann difference with its interval.
    """
    names = np.array(matrix.columns, dtype=object)
    places = pair_places(names, control)
    cube, tables = seed_cube(frame, matrix), []
    for kind, tasks in blocks.items():
        family = len(places[0]) * (1 if kind == list(blocks)[-1] else len(blocks) - 1)
        means = matrix.loc[tasks].to_numpy(dtype=float).T  # designs x tasks
        row = {"type": kind, "first": names[places[0]], "second": names[places[1]], "n_tasks": len(tasks)}
        of = spreads(cube[:, matrix.index.get_indexer(tasks)])
        tables.append(pd.DataFrame(row | _tested(means, of, places, settings, settings.alpha / (named or family))))
    return corrected_pairs(pd.concat(tables, ignore_index=True), settings)


def _tested(means: Floats, of: Spreads, places: Places, settings: Settings, level: float) -> dict[str, Any]:
    """Return the columns of tests of means [designs, tasks] and of the runs that they are of, each [P]."""
    first, second = places
    d = rounded(means[second] - means[first]) + 0.0  # -0. is 0.
    seeds, ranks = pair_test(of, first, second), signed_rank(d)
    (mean, error), confidence = mean_and_error(rounded(means[second] - means[first]) + 0.0), 1 - settings.alpha
    over_tasks = student_reach(error, max(1, d.shape[1] - 1), confidence)
    half = np.where(np.isnan(seeds.mean), over_tasks, reach(seeds, confidence))
    columns = {"mean_difference": mean, "low": mean - half, "high": mean + half}
    columns |= {"p": two_sided(seeds), "p_wilcoxon": ranks.p, "p_equivalent": outside(seeds, settings.rope)}
    columns |= {"detectable": _detectable(of, first, second, level)}
    columns |= {name: value for name, value in vars(seeds).items() if name != "mean"}
    columns |= {name: value for name, value in vars(ranks).items() if name != "p"}
    typical = typical_difference(d, ranks, settings.alpha)
    return columns | {"hodges_lehmann": typical.estimate, "hl_low": typical.low, "hl_high": typical.high}


def _detectable(of: Spreads, first: Ints, second: Ints, level: float) -> Floats:
    """Return `detectable` [P] of the pairs with their own seeds; nan where these are too few."""
    seeds, found = np.stack([of.counts[first], of.counts[second]]), np.full(len(first), np.nan)
    known = with_components(of, first, second)
    if known.any():
        found[known] = detectable(components(of, first[known], second[known]), level, seeds[:, known])
    return found


def with_components(of: Spreads, first: Ints, second: Ints) -> np.ndarray:
    """Return which pairs [P] are tested: three seeds each, not one run alone on both sides, and five tasks."""
    enough = (of.counts >= FEWEST_SEEDS) & (of.means.shape[-1] >= FEWEST_TASKS)
    return enough[first] & enough[second] & ~(of.one_run[first] & of.one_run[second])


def corrected_pairs(pairs: pd.DataFrame, settings: Settings, families: pd.Series | None = None) -> pd.DataFrame:
    """Return pairs with Holm's p of their three tests over each family, `family_size`, `significant`, `equivalent`.

    So pairs that were tested before can be corrected as other families. The columns begin with those of TESTED.
    """
    families = main_family(pairs) if families is None else families
    within = holm_within(pairs["p_equivalent"], families)
    table = corrected(pairs, settings.alpha, families=families)
    table = table.assign(p_equivalent_holm=within, equivalent=passes(within.fillna(1.0).to_numpy(), settings.alpha))
    leading = [*TESTED, "significant", "p_equivalent", "p_equivalent_holm", "equivalent", "detectable"]
    return table[[*leading, *(name for name in table if name not in leading)]]


def corrected(
    tests: pd.DataFrame, alpha: float, over_tasks: str = "wilcoxon", families: pd.Series | None = None
) -> pd.DataFrame:
    """Return tests (columns `type`, `p` over tasks and seeds, `p_<over_tasks>`; one row each) with what Holm says.

    Columns `p_holm`, `p_<over_tasks>_holm`, `family_size` and `significant`. families: a label for each row, default
    `main_family`. An unknown p counts as 1 in its family.
    """
    families = main_family(tests) if families is None else families
    both, one = holm_within(tests["p"], families), holm_within(tests[f"p_{over_tasks}"], families)
    words = np.where(passes(one.to_numpy(), alpha), TASKS_ONLY, NO)
    return tests.assign(
        **{"p_holm": both, f"p_{over_tasks}_holm": one},
        family_size=families.groupby(families).transform("size"),
        significant=np.where(passes(both.fillna(1.0).to_numpy(), alpha), BOTH, words),
    )


def main_family(tests: pd.DataFrame) -> pd.Series:
    """Return the family of each row: "main" on the last type, which is all tasks together or the only one; "types"."""
    return (tests["type"] == tests["type"].iloc[-1]).map({True: "main", False: "types"})


def holm_within(p: pd.Series, families: pd.Series) -> pd.Series:
    """Return Holm's p over each family, nan where p is."""
    adjusted = p.fillna(1.0).groupby(families.to_numpy()).transform(lambda of: holm(of.to_numpy()))
    return adjusted.where(p.notna())


def seed_cube(frame: pd.DataFrame | None, matrix: pd.DataFrame) -> Floats:
    """Return the scores [designs, tasks, seeds] of a long frame in the order of `matrix`; nan where there is none."""
    known = pd.DataFrame() if frame is None else frame[frame["seed"] != ""]
    if known.empty:
        return np.empty((matrix.shape[1], matrix.shape[0], 0))
    seeds, names = pd.factorize(known["seed"])
    cube = np.full((matrix.shape[1], matrix.shape[0], len(names)), np.nan)
    designs, tasks = matrix.columns.get_indexer(known["design"]), matrix.index.get_indexer(known["task"])
    shown = (designs >= 0) & (tasks >= 0)
    cube[designs[shown], tasks[shown], seeds[shown]] = known["score"].to_numpy()[shown]
    return cube


def pair_places(designs: Sequence[str] | NDArray[np.object_], control: str = "") -> Places:
    """Return the places of the first and of the second design of every pair, with a `control` of those that hold it,
    which is the first then."""
    names = np.array(designs, dtype=object)
    first, second = np.triu_indices(len(names), k=1)
    kept, turned = (names[first] == control) | (names[second] == control) | (not control), names[second] == control
    return np.where(turned, second, first)[kept], np.where(turned, first, second)[kept]


def pairs_among(pairs: pd.DataFrame, designs: Collection[str]) -> pd.DataFrame:
    """Return the rows of the pairs both of whose designs are among these."""
    return pairs[pairs["first"].isin(designs) & pairs["second"].isin(designs)]


def from_design(pairs: pd.DataFrame, one: str) -> pd.DataFrame:
    """Return the pairs that hold `one`, turned to the other design (`second`) minus `one`."""
    rows = pairs[(pairs["first"] == one) | (pairs["second"] == one)]
    turned = (rows["second"] == one).to_numpy()
    ends = {"low": rows["low"].mask(turned, -rows["high"]), "high": rows["high"].mask(turned, -rows["low"])}
    mean = rows["mean_difference"].mask(turned, -rows["mean_difference"])
    return rows.assign(first=one, second=rows["second"].mask(turned, rows["first"]), mean_difference=mean, **ends)


def without_one_task(matrix: pd.DataFrame, frame: pd.DataFrame, control: str = "") -> pd.DataFrame:
    """Return per pair the task without which Holm's p over tasks and seeds is largest: first, second, task, p_holm.

    matrix: tasks x designs, of one block; frame: long, the scores by seed.
    """
    names, cube = np.array(matrix.columns, dtype=object), seed_cube(frame, matrix)
    first, second = pair_places(names, control)
    without = (np.delete(cube, task, axis=1) for task in range(len(matrix)))
    p = np.array([two_sided(pair_test(spreads(scores), first, second)) for scores in without])
    p = np.array([holm(np.nan_to_num(of, nan=1.0)) for of in p])
    worst = p.argmax(axis=0)
    columns = {"task": matrix.index.to_numpy()[worst], "p_holm": p.max(axis=0)}
    return pd.DataFrame({"first": names[first], "second": names[second], **columns})
