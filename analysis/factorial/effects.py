"""Main effects and interactions of the factors that designs cross. Why so: docs/decisions/factorial-effects.md."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.factorial.crossings import Crossing, crossings
from analysis.factorial.effect_notes import effect_notes
from analysis.factorial.marginals import marginal_means
from analysis.family import corrected
from analysis.settings import Settings
from analysis.statistics.contrasts import effect_contrasts
from analysis.statistics.sign_flip import sign_flip

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Factorial:
    """One complete crossing and what was found over it.

    `tests`: one row a (type, effect), columns of `effect_tests`; `marginals`: those of `marginal_means`.
    """

    crossing: Crossing
    tests: "pd.DataFrame"
    marginals: "pd.DataFrame"


def factorial_effects(
    matrix: "pd.DataFrame", factors: "pd.DataFrame", blocks: dict[str, list[str]], settings: Settings
) -> tuple[list[Factorial], list[str]]:
    """Return the effects over every complete crossing (none, one or two) and the notes a reader needs.

    matrix: tasks x designs, scores, mean over seeds; factors: designs x factors, texts; blocks: type -> its tasks.
    """
    found, notes = crossings(factors.loc[list(matrix.columns)])
    factorials = []
    for crossing in found:
        scores = {kind: _cells(matrix, tasks, crossing) for kind, tasks in blocks.items()}
        tests = effect_tests(scores, crossing, settings)
        factorials.append(Factorial(crossing, tests, marginal_means(scores, crossing, 1 - settings.alpha)))
    return factorials, notes + effect_notes([f.tests for f in factorials], settings)


def _cells(matrix: "pd.DataFrame", tasks: list[str], crossing: Crossing) -> Floats:
    """Return [n tasks, cells]."""
    return matrix.loc[tasks, crossing.designs].to_numpy(dtype=np.float64)


def effect_tests(scores: dict[str, Floats], crossing: Crossing, settings: Settings) -> "pd.DataFrame":
    """Return one row a (type, effect): F of the repeated-measures analysis, its sign-flip p, and the correction.

    scores: type -> [n tasks, cells]. Columns: type, effect, n_tasks, n_zero (tasks without any difference), df,
    df_error, F, partial_eta_squared, p, p_min (smallest that so many tasks allow), flips, exact, and those of
    `analysis.family.corrected`; the family is the effects of one crossing within a type (or within the table).
    """
    import pandas as pd

    contrasts = effect_contrasts({name: len(own) for name, own in crossing.levels.items()})
    rows = []
    for kind, values in scores.items():
        for effect, columns in contrasts.items():
            row = effect_test(values @ columns, settings.decimals)
            rows.append({"type": kind, "effect": " x ".join(effect), **row})
    return corrected(pd.DataFrame(rows), settings)


def effect_test(vectors: Floats, decimals: int = 12) -> dict[str, float | int | bool]:
    """Test one effect from its orthonormal contrasts [n tasks, df].

    F = MS effect / MS (effect x task), with df and df (n - 1) degrees of freedom. It is infinite where every task shows
    the same effect and 0 where no task shows any; partial eta squared is SS effect / (SS effect + SS error). Both are
    nan with one task. Differences below `decimals` are zero, so float noise is no effect.
    """
    tiny = 0.5 * 10.0**-decimals
    vectors = np.where(np.abs(vectors) < tiny, 0.0, vectors)
    n, df = vectors.shape
    mean = vectors.mean(axis=0)
    effect, error = float(n * (mean**2).sum()), float(((vectors - mean) ** 2).sum())
    error = 0.0 if error < n * df * tiny**2 else error
    test = sign_flip(vectors)
    return {
        "n_tasks": n,
        "n_zero": int((vectors == 0).all(axis=1).sum()),
        "df": df,
        "df_error": df * (n - 1),
        "F": _ratio(effect / df, error, df * (n - 1)),
        "partial_eta_squared": _share(effect, error, n),
        **vars(test),
    }


def _ratio(effect: float, error: float, df_error: int) -> float:
    if df_error == 0:
        return float("nan")
    if error == 0:
        return float("inf") if effect else 0.0
    return effect / (error / df_error)


def _share(effect: float, error: float, n: int) -> float:
    if n < 2:
        return float("nan")
    return effect / (effect + error) if effect else 0.0


def effects_for_file(effects: list[Factorial]) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Return the tests and the marginal means of all crossings, each with a first column that names its crossing."""
    import pandas as pd

    names = [factorial.crossing.name for factorial in effects]
    tables = [[getattr(f, what) for f in effects] for what in ("tests", "marginals")]
    one, other = (pd.concat(own, keys=names, names=["crossing", ""]) for own in tables)
    return one.reset_index(level=0).reset_index(drop=True), other.reset_index(level=0).reset_index(drop=True)
