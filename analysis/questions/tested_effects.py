"""Main effects, interactions and marginal means over complete crossings."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from analysis.questions.compared_pairs import corrected, seed_cube
from analysis.questions.crossings import Crossing, crossings
from analysis.settings import Settings
from analysis.statistics.arrays import Floats
from analysis.statistics.contrasts import effect_contrasts
from analysis.statistics.interaction import OverSeeds, effect_over_seeds
from analysis.statistics.intervals import student_interval
from analysis.statistics.seeds import FEWEST_SEEDS, spreads
from analysis.statistics.sign_flip import sign_flip


@dataclass(frozen=True)
class Factorial:
    """One complete crossing and what was found over it.

    `tests`: one row per (type, effect), columns of `effect_tests`; `marginals`: those of `marginal_means`.
    """

    crossing: Crossing
    tests: pd.DataFrame
    marginals: pd.DataFrame


def factorial_effects(
    matrix: pd.DataFrame,
    factors: pd.DataFrame,
    blocks: dict[str, list[str]],
    settings: Settings,
    frame: pd.DataFrame | None = None,
) -> tuple[list[Factorial], list[str]]:
    """Return the effects over every complete crossing (none, one or two) and the notes on what these leave out.

    matrix: tasks x designs, scores, mean over seeds; factors: designs x factors, texts; blocks: type -> its tasks;
    frame: long, the scores by seed.
    """
    complete, notes = crossings(factors.loc[list(matrix.columns)])
    factorials = []
    for crossing in complete:
        cells = matrix[crossing.designs]
        scores = {kind: cells.loc[tasks].to_numpy(dtype=np.float64) for kind, tasks in blocks.items()}
        cube = seed_cube(frame, cells)
        by_seed = {kind: cube[:, cells.index.get_indexer(tasks)] for kind, tasks in blocks.items()}
        tests = effect_tests(scores, crossing, settings.alpha, by_seed)
        factorials.append(Factorial(crossing, tests, marginal_means(scores, crossing, 1 - settings.alpha)))
    return factorials, notes


def effect_tests(
    scores: dict[str, Floats], crossing: Crossing, alpha: float, by_seed: dict[str, Floats] | None = None
) -> pd.DataFrame:
    """Return one row per (type, effect), those of one type after those of another, with what Holm says of it.

    scores: type -> [n tasks, cells]; by_seed: type -> [cells, n tasks, seeds]. Columns: type, effect, n_tasks; those of
    `effect_test` over tasks, whose p is `p_permutation`; those of `effect_over_seeds` (n_seeds, F_seeds, df_seeds,
    df_error_seeds), whose p is `p`, nan where a cell has fewer than three seeds; and those of `corrected`.
    """
    contrasts = effect_contrasts({name: len(levels) for name, levels in crossing.levels.items()})
    rows = []
    for kind, values in scores.items():
        runs = spreads(np.empty((*values.T.shape, 0)) if by_seed is None else by_seed[kind])
        for effect, columns in contrasts.items():
            row, seeds = effect_test(values @ columns), effect_over_seeds(runs, columns)
            known = vars(seeds if seeds.n_seeds >= FEWEST_SEEDS else OverSeeds(seeds.n_seeds))
            rows.append({"type": kind, "effect": " x ".join(effect), **row, **known})
    tests = pd.DataFrame(rows).rename(columns={"p": "p_permutation", "p_seeds": "p"})
    return corrected(tests, alpha, "permutation")


def effect_test(vectors: Floats, decimals: int = 12) -> dict[str, float | int | bool]:
    """Test one effect from its orthonormal contrasts [n tasks, df].

    F = MS effect / MS (effect x task), with df and df (n - 1) degrees of freedom. It is infinite where every task shows
    the same effect and 0 where no task shows any; partial eta squared is SS effect / (SS effect + SS error). Both are
    nan with one task. Differences below `decimals` are zero, so float noise is no effect.
    """
    tiny = 0.5 * 10.0**-decimals
    vectors = np.where(np.abs(vectors) < tiny, 0.0, vectors)
    n, df = vectors.shape
    mean, df_error = vectors.mean(axis=0), df * (n - 1)
    effect, error = float(n * (mean**2).sum()), float(((vectors - mean) ** 2).sum())
    error = 0.0 if error < n * df * tiny**2 else error
    if n < 2:
        f, share = np.nan, np.nan
    elif effect == 0:
        f, share = 0.0, 0.0
    else:
        f, share = (effect / df) / (error / df_error) if error else np.inf, effect / (effect + error)
    untouched = int((vectors == 0).all(axis=1).sum())
    sizes = {"n_tasks": n, "n_zero": untouched, "df": df, "df_error": df_error}
    return sizes | {"F": f, "partial_eta_squared": share, **vars(sign_flip(vectors))}


def marginal_means(scores: dict[str, Floats], crossing: Crossing, confidence: float = 0.95) -> pd.DataFrame:
    """Return one row per (type, factor, level), and one per (type, pair of two-level factors).

    scores: type -> [n tasks, cells]. `mean`: score of the level; `difference`: level minus grand mean, taken within
    each task; `low`, `high`: its t interval over tasks. For two factors of two levels `difference` is the
    difference of differences, (later - earlier level of the first) at the later minus at the earlier of the second.
    """
    rows, factors = [], list(enumerate(crossing.levels.items(), start=1))
    for kind, values in scores.items():
        cells = values.reshape(len(values), *map(len, crossing.levels.values()))
        for axis, (factor, levels) in factors:
            of_levels = _over_others(cells, axis)
            differences, means = of_levels - of_levels.mean(axis=1, keepdims=True), of_levels.mean(axis=0)
            intervals = student_interval(differences.T, confidence)
            columns = levels, means, differences.mean(axis=0), *intervals
            rows += [[kind, factor, level, len(values), *sizes] for level, *sizes in zip(*columns, strict=True)]
        for (a, (one, levels)), (b, (two, others)) in combinations(factors, 2):
            if len(levels) == len(others) == 2:
                step = np.diff(_over_others(cells, a, b), axis=1)[:, 0]  # [n, 2]
                text = f"({levels[1]} - {levels[0]}) at {others[1]} - at {others[0]}"
                steps = (step[:, 1] - step[:, 0])[None]
                interval = np.ravel(student_interval(steps, confidence))
                rows.append([kind, f"{one} x {two}", text, len(values), np.nan, steps.mean(), *interval])
    return pd.DataFrame(rows, columns=["type", "factor", "level", "n_tasks", "mean", "difference", "low", "high"])


def _over_others(cells: Floats, *axes: int) -> Floats:
    """Mean over all factors but these; the tasks stay."""
    others = tuple(axis for axis in range(1, cells.ndim) if axis not in axes)
    return cells.mean(axis=others) if others else cells
