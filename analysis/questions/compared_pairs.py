"""Every pair of designs on every task type: difference, exact test, correction, and what could be reached at all."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.settings import Settings
from analysis.statistics.arrays import Floats, Ints, rounded
from analysis.statistics.correction import CORRECTIONS, passes
from analysis.statistics.intervals import direction, mean_and_error, student_interval, typical_difference
from analysis.statistics.seed_errors import copies
from analysis.statistics.seeds import over_tasks_and_seeds, two_sided
from analysis.statistics.wilcoxon import SignedRank, signed_rank

ALL = "All"
ALWAYS = ("holm", "bh")  # both stand in the files, whichever decides


def compare_pairs(
    matrix: pd.DataFrame,
    blocks: dict[str, list[str]],
    settings: Settings,
    control: str = "",
    frame: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return one row per (type, pair); with a `control` only the pairs that hold it.

    matrix: tasks x designs, designs in config order; blocks: type -> its tasks; frame: long, the scores by seed.
    `difference` is the mean over tasks of second minus first; the columns of the test follow, those of `_sizes`, which
    belong to it, those of `over_tasks_and_seeds` and `corrected`. Intervals have the level 1 - alpha.
    A pair is `told` where the corrected tests over tasks and over tasks and seeds both pass, and point the same way.
    """
    names = np.array(matrix.columns, dtype=object)
    first, second = pair_places(names, control)
    cube, tables = seed_cube(frame, matrix), []
    for kind, tasks in blocks.items():
        values = matrix.loc[tasks].to_numpy(dtype=float).T  # designs x tasks
        differences, means = values[second] - values[first], values.mean(axis=1)
        test = signed_rank(differences, settings.zeros, settings.decimals)
        columns = {"type": kind, "first": names[first], "second": names[second]}
        columns |= {"mean_first": means[first], "mean_second": means[second], "difference": differences.mean(axis=1)}
        columns |= vars(test) | _sizes(differences, test, settings)
        seeds = over_tasks_and_seeds(cube[:, matrix.index.get_indexer(tasks)], first, second)
        tables.append(pd.DataFrame(columns | vars(seeds) | {"p_seeds": two_sided(seeds)}))
    return corrected_pairs(pd.concat(tables, ignore_index=True), settings)


def corrected_pairs(tests: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Return tests of pairs with the columns of `corrected`, `told` only where both tests point the same way.

    So pairs that were tested before can be corrected as another family.
    """
    tests = corrected(tests, settings)
    side = np.sign(tests["w_plus"] - tests["w_minus"])  # `ahead` of a test that passes
    return tests.assign(told=tests["told"] & (side == np.sign(tests["mean_seeds"])))


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


def common_seeds(cube: Floats) -> Floats:
    """Return [designs, tasks, seeds] of the seeds that all designs have on all tasks; of copies of one run one seed."""
    runs = cube[:, :, ~np.isnan(cube).any(axis=(0, 1))]
    return runs[:, :, :1] if copies(runs).all() else runs


def pair_places(designs: Sequence[str] | NDArray[np.object_], control: str = "") -> tuple[Ints, Ints]:
    """Return the places of the first and of the second design of every pair, with a `control` of those that hold it."""
    names = np.array(designs, dtype=object)
    first, second = np.triu_indices(len(names), k=1)
    kept = (names[first] == control) | (names[second] == control) | (not control)
    return first[kept], second[kept]


def pairs_among(pairs: pd.DataFrame, designs: Collection[str]) -> pd.DataFrame:
    """Return the rows of the pairs both of whose designs are among these."""
    return pairs[pairs["first"].isin(designs) & pairs["second"].isin(designs)]


def _sizes(differences: Floats, test: SignedRank, settings: Settings) -> dict[str, Any]:
    """Return the columns of the estimates of `differences` [P, tasks].

    `hodges_lehmann`, `hl_low`, `hl_high`, `hl_confidence` (attained) belong to the test; `ahead`: 1 where the test, or
    without significance the estimate, has the second design ahead, -1 the first, 0 neither; `mean_low`, `mean_high`:
    Student's interval of the mean over tasks; `d_z`: mean over standard deviation, nan where nothing varies.
    """
    d = rounded(differences, settings.decimals) + 0.0  # -0. is 0.
    typical = typical_difference(d, test, settings.alpha, settings.zeros, settings.decimals)
    (mean, error), (low, high) = mean_and_error(d), student_interval(d, 1 - settings.alpha)
    d_z = np.divide(mean, error * np.sqrt(d.shape[1]), out=np.full(len(d), np.nan), where=error > 0)
    columns = {"hodges_lehmann": typical.estimate, "hl_low": typical.low, "hl_high": typical.high}
    columns |= {"hl_confidence": typical.confidence}
    columns |= {"ahead": direction(typical.estimate, test, settings.alpha).astype(int)}
    return columns | {"mean_low": low, "mean_high": high, "d_z": d_z}


def corrected(tests: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Return the tests (columns type, p, p_min, perhaps p_seeds; one row per test) with those of the correction.

    `family_size`; `p_holm` and `p_bh`; `p_adjusted` and `p_min_adjusted` by the correction that `settings` names,
    each over the family; `significant`, of the runs at hand; `told`, of the designs: significant, and p_seeds passes
    after the same correction, where unknown p counts as 1. `reachable`: yes, uncorrected (p could pass, the corrected p
    could not), or no: corrected values only grow with any p of the family, so none goes below the corrected `p_min`.
    """
    by_family = tests.groupby("type" if settings.family == "type" else lambda _: "table", sort=False)

    def within(column: pd.Series, correction: str) -> pd.Series:
        return by_family[column.name].transform(lambda p: CORRECTIONS[correction](p.fillna(1.0).to_numpy()))

    if "p_seeds" not in tests:
        return corrected(tests.assign(p_seeds=np.nan), settings).drop(columns="p_seeds")
    adjusted, floor = within(tests["p"], settings.correction), within(tests["p_min"], settings.correction)
    over_seeds = within(tests["p_seeds"], settings.correction)
    significant = passes(adjusted, settings.alpha)
    raw_only = np.where(passes(tests["p_min"], settings.alpha), "uncorrected", "no")
    return tests.assign(
        family_size=by_family["p"].transform("size"),
        **{f"p_{name}": within(tests["p"], name) for name in ALWAYS},
        p_adjusted=adjusted,
        p_min_adjusted=floor,
        significant=significant,
        p_seeds_adjusted=over_seeds.where(tests["p_seeds"].notna()),
        told=significant & passes(over_seeds, settings.alpha),
        reachable=np.where(passes(floor, settings.alpha), "yes", raw_only),
    )
