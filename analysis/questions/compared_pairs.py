"""Every pair of designs on every task type: difference, exact test, correction, and what could be reached at all."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.settings import Settings
from analysis.statistics.arrays import Floats, Ints
from analysis.statistics.correction import CORRECTIONS, FLOORS, RESAMPLED, Correction, Family, of_seeds, passes
from analysis.statistics.cross_checks import cross_checks
from analysis.statistics.effect_sizes import effect_sizes
from analysis.statistics.intervals import direction, tipping_tasks, typical_difference
from analysis.statistics.seed_errors import copies
from analysis.statistics.seeds import over_tasks_and_seeds, two_sided
from analysis.statistics.wilcoxon import SignedRank, signed_rank, signed_ranks

ALL = "All"
ALWAYS = ("holm", "bh")  # both stand in the files, whichever decides
BETWEEN = "; "  # the tasks of `mean_tipped_by`


def compare_pairs(
    matrix: pd.DataFrame,
    blocks: dict[str, list[str]],
    settings: Settings,
    control: str = "",
    frame: pd.DataFrame | None = None,
    *,
    cube: Floats | None = None,
    sizes: bool = True,
) -> pd.DataFrame:
    """Return one row per (type, pair); with a `control` only the pairs that hold it.

    matrix: tasks x designs, designs in config order; blocks: type -> its tasks; frame: long, the scores by seed; cube:
    what `seed_cube` makes of it, where that is known.
    `difference` is the mean over tasks of second minus first; the columns of the test follow, those of `_typical`,
    which belong to it, those of `cross_checks`, `effect_sizes`, `over_tasks_and_seeds` and `corrected`. Intervals have
    the level 1 - alpha. sizes=False leaves out estimates, intervals and checks, which take most of the time.
    A pair is `told` where the corrected tests over tasks and over tasks and seeds both pass, and point the same way.
    """
    names = np.array(matrix.columns, dtype=object)
    first, second = pair_places(names, control)
    cube, tables, ranks = seed_cube(frame, matrix) if cube is None else cube, [], []
    for kind, tasks in blocks.items():
        values = matrix.loc[tasks].to_numpy(dtype=float).T  # designs x tasks
        differences, means = values[second] - values[first], values.mean(axis=1)
        test = signed_rank(differences, settings.zeros, settings.decimals)
        columns = {"type": kind, "first": names[first], "second": names[second]}
        columns |= {"mean_first": means[first], "mean_second": means[second], "difference": differences.mean(axis=1)}
        columns |= vars(test)
        if sizes:
            columns |= _typical(differences, test, tasks, settings)
            columns |= cross_checks(differences, settings.decimals, 1 - settings.alpha)
            columns |= effect_sizes(differences, test, 1 - settings.alpha, settings.decimals)
        places = matrix.index.get_indexer(tasks)
        seeds = over_tasks_and_seeds(cube[:, places], first, second)
        tables.append(pd.DataFrame(columns | vars(seeds) | {"p_seeds": two_sided(seeds)}))
        if settings.correction == RESAMPLED:
            ranks.append(np.zeros((len(first), len(matrix)), dtype=np.int64))
            ranks[-1][:, places] = signed_ranks(differences, settings.zeros, settings.decimals)
    tests = pd.concat(tables, ignore_index=True)
    return corrected_pairs(tests, settings, np.concatenate(ranks) if ranks else None)


def corrected_pairs(tests: pd.DataFrame, settings: Settings, ranks: Ints | None = None) -> pd.DataFrame:
    """Return tests of pairs with the columns of `corrected`, `told` only where both tests point the same way.

    So pairs that were tested before can be corrected as another family.
    """
    tests = corrected(tests, settings, ranks)
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


def _typical(differences: Floats, test: SignedRank, tasks: list[str], settings: Settings) -> dict[str, Any]:
    """Return the columns of the estimate that belongs to the test of `differences` [P, tasks].

    `hodges_lehmann`, `hl_low`, `hl_high`, `hl_confidence` (attained); `ahead`: 1 where the test, or without
    significance the estimate, has the second design ahead, -1 the first, 0 neither; `mean_tipped_by`: the tasks that
    turn the mean against it, the largest first, as text.
    """
    typical = typical_difference(differences, test, settings.alpha, settings.zeros, settings.decimals)
    ahead = direction(typical.estimate, test, settings.alpha)
    tipped = np.full(len(differences), "", dtype=object)
    for row in np.flatnonzero(differences.mean(axis=1) * ahead < 0):
        places = tipping_tasks(differences[row], float(ahead[row]), settings.decimals)
        tipped[row] = BETWEEN.join(tasks[place] for place in places)
    columns = {"hodges_lehmann": typical.estimate, "hl_low": typical.low, "hl_high": typical.high}
    return columns | {"hl_confidence": typical.confidence, "ahead": ahead.astype(int), "mean_tipped_by": tipped}


def corrected(tests: pd.DataFrame, settings: Settings, ranks: Ints | None = None) -> pd.DataFrame:
    """Return the tests (columns type, p, p_min, perhaps p_seeds; one row per test) with those of the correction.

    `family_size`; `p_holm` and `p_bh`; `p_adjusted` and `p_min_adjusted` by the correction that `settings` names,
    each over the family; `significant`, of the runs at hand; `told`, of the designs: significant, and p_seeds passes
    after the same correction, where unknown p counts as 1. `reachable`: yes, uncorrected (p could pass, the corrected p
    could not), or no.
    The corrected values of Holm, Shaffer and Benjamini-Hochberg only grow with any p of the family, so no data with so
    many tasks can go below the corrected `p_min`; those of Westfall and Young, which take the signed `ranks` [tests,
    all tasks], can be p itself. p_seeds has no such ranks and is corrected by Holm there.
    """
    types = tests["type"].to_numpy(dtype=object)
    families = types if settings.family == "type" else np.full(len(tests), "table", dtype=object)
    groups, sizes = [np.flatnonzero(families == name) for name in dict.fromkeys(families)], np.empty(len(tests), int)
    for rows in groups:
        sizes[rows] = len(rows)
    p, p_min = tests["p"].to_numpy(dtype=np.float64), tests["p_min"].to_numpy(dtype=np.float64)

    def within(values: Floats, correct: Correction) -> Floats:
        adjusted = np.empty_like(values)
        for rows in groups:
            of_family = np.empty((0, 0)) if ranks is None else ranks[rows]
            family = Family(len(set(types[rows])), of_family[:, of_family.any(axis=0)].astype(np.int64))
            adjusted[rows] = correct(values[rows], family)
        return adjusted

    correct = CORRECTIONS[settings.correction]
    adjusted, floor = within(p, correct), within(p_min, FLOORS.get(settings.correction, correct))
    raw_only = np.where(passes(p_min, settings.alpha), "uncorrected", "no")
    significant = passes(adjusted, settings.alpha)
    over_seeds = tests["p_seeds"].to_numpy(dtype=np.float64) if "p_seeds" in tests else np.full(len(tests), np.nan)
    seeds_adjusted = np.where(
        np.isnan(over_seeds),
        np.nan,
        within(np.nan_to_num(over_seeds, nan=1.0), CORRECTIONS[of_seeds(settings.correction)]),
    )
    return tests.assign(
        family_size=sizes,
        **{f"p_{name}": within(p, CORRECTIONS[name]) for name in ALWAYS},
        p_adjusted=adjusted,
        p_min_adjusted=floor,
        significant=significant,
        p_seeds_adjusted=seeds_adjusted,
        told=significant & passes(seeds_adjusted, settings.alpha),
        reachable=np.where(passes(floor, settings.alpha), "yes", raw_only),
    )
