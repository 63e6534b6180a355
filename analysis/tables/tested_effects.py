"""Main effects, interactions and marginal means over complete crossings."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.settings import Settings
from analysis.statistics.arrays import DECIMALS, Floats
from analysis.statistics.contrasts import effect_contrasts
from analysis.statistics.interaction import OverSeeds, effect_over_seeds
from analysis.statistics.seeds import FEWEST_SEEDS, FEWEST_TASKS, spreads
from analysis.statistics.sign_flip import sign_flip
from analysis.tables.compared_pairs import corrected, seed_cube
from analysis.tables.crossings import Crossing, crossing_of


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
) -> tuple[Factorial | None, list[str]]:
    """Return the effects over the complete crossing, None where there is none, and the notes on what it leaves out.

    matrix: tasks x designs, scores, mean over seeds; factors: designs x factors, texts; blocks: type -> its tasks;
    frame: long, the scores by seed.
    """
    crossing, notes = crossing_of(factors.loc[list(matrix.columns)])
    if crossing is None:
        return None, notes
    cells = matrix[crossing.designs]
    scores = {kind: cells.loc[tasks].to_numpy(dtype=np.float64) for kind, tasks in blocks.items()}
    cube = seed_cube(frame, cells)
    by_seed = {kind: cube[:, cells.index.get_indexer(tasks)] for kind, tasks in blocks.items()}
    tests = effect_tests(scores, crossing, settings.alpha, by_seed)
    return Factorial(crossing, tests, marginal_means(scores, crossing)), notes


def effect_tests(
    scores: dict[str, Floats], crossing: Crossing, alpha: float, by_seed: dict[str, Floats] | None = None
) -> pd.DataFrame:
    """Return one row per (type, effect), those of one type after those of another, with what Holm says of it.

    scores: type -> [n tasks, cells]; by_seed: type -> [cells, n tasks, seeds]. Columns: type, effect, n_tasks; those of
    `effect_test` over tasks, whose p is `p_permutation`; those of `effect_over_seeds` (n_seeds, F_seeds, df_seeds,
    df_error_seeds), whose p is `p`, nan below three seeds of each cell and five tasks; and those of `corrected`.
    """
    contrasts = effect_contrasts({name: len(levels) for name, levels in crossing.levels.items()})
    rows = []
    for kind, values in scores.items():
        runs = spreads(np.empty((*values.T.shape, 0)) if by_seed is None else by_seed[kind])
        for effect, columns in contrasts.items():
            row, seeds = effect_test(values @ columns), effect_over_seeds(runs, columns)
            enough = seeds.n_seeds >= FEWEST_SEEDS and len(values) >= FEWEST_TASKS
            known = vars(seeds if enough else OverSeeds(seeds.n_seeds))
            rows.append({"type": kind, "effect": " x ".join(effect), **row, **known})
    tests = pd.DataFrame(rows).rename(columns={"p": "p_permutation", "p_seeds": "p"})
    return corrected(tests, alpha, "permutation")


def effect_test(vectors: Floats) -> dict[str, float | int | bool]:
    """Test one effect from its orthonormal contrasts [n tasks, df].

    F = MS effect / MS (effect x task), with df and df (n - 1) degrees of freedom. It is infinite where every task shows
    the same effect and 0 where no task shows any; partial eta squared is SS effect / (SS effect + SS error). Both are
    nan with one task. Differences below `DECIMALS` are zero, so float noise is no effect.
    """
    tiny = 0.5 * 10.0**-DECIMALS
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


def marginal_means(scores: dict[str, Floats], crossing: Crossing) -> pd.DataFrame:
    """Return one row per (type, factor, level). scores: type -> [n tasks, cells]. `mean`: score of the level;
    `difference`: level minus grand mean."""
    rows = []
    for kind, values in scores.items():
        cells = values.mean(axis=0).reshape(*map(len, crossing.levels.values()))
        for axis, (factor, levels) in enumerate(crossing.levels.items()):
            means = cells.mean(axis=tuple(other for other in range(cells.ndim) if other != axis))
            rows += [
                (kind, factor, level, len(values), mean, mean - means.mean())
                for level, mean in zip(levels, means, strict=True)
            ]
    return pd.DataFrame(rows, columns=["type", "factor", "level", "n_tasks", "mean", "difference"])
