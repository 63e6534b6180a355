"""Marginal means: each level of each factor, over tasks and the other factors, with an interval over tasks."""

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.factorial.crossings import Crossing

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


def marginal_means(scores: dict[str, Floats], crossing: Crossing, confidence: float = 0.95) -> "pd.DataFrame":
    """Return one row a (type, factor, level), and one a (type, pair of two-level factors).

    scores: type -> [n tasks, cells]. `mean`: score of the level; `difference`: level minus grand mean, taken within
    each task; `low`, `high`: its t interval over tasks. For two factors of two levels `difference` is the
    difference of differences, (later - earlier level of the first) at the later minus at the earlier of the second.
    """
    import pandas as pd

    shape = [len(own) for own in crossing.levels.values()]
    rows = []
    for kind, values in scores.items():
        cells = values.reshape(len(values), *shape)
        for factor, (levels, differences, means) in _levels(cells, crossing).items():
            for k, level in enumerate(levels):
                rows.append([kind, factor, level, len(values), means[k], *t_interval(differences[:, k], confidence)])
        for factor, text, differences in _two_by_two(cells, crossing):
            rows.append([kind, factor, text, len(values), np.nan, *t_interval(differences, confidence)])
    return pd.DataFrame(rows, columns=["type", "factor", "level", "n_tasks", "mean", "difference", "low", "high"])


def t_interval(differences: Floats, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return mean, low and high of [n] differences: mean -+ t(n - 1) s / sqrt(n); nan bounds with one task."""
    from scipy.stats import t

    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return mean, float("nan"), float("nan")
    half = float(t.ppf((1 + confidence) / 2, n - 1) * differences.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def _levels(cells: Floats, crossing: Crossing) -> dict[str, tuple[list[str], Floats, Floats]]:
    """Return factor -> its levels, level minus grand mean [n, levels], and the levels' means [levels]."""
    found = {}
    for axis, (factor, levels) in enumerate(crossing.levels.items(), start=1):
        own = _over_others(cells, axis)
        found[factor] = (levels, own - own.mean(axis=1, keepdims=True), own.mean(axis=0))
    return found


def _two_by_two(cells: Floats, crossing: Crossing) -> list[tuple[str, str, Floats]]:
    """Return (interaction, what it is in words, [n] differences of differences)."""
    found = []
    for (a, (one, own)), (b, (two, other)) in combinations(enumerate(crossing.levels.items(), start=1), 2):
        if len(own) == len(other) == 2:
            table = _over_others(cells, a, b)  # [n, 2, 2]
            difference = table[:, 1, :] - table[:, 0, :]
            text = f"({own[1]} - {own[0]}) at {other[1]} - at {other[0]}"
            found.append((f"{one} x {two}", text, difference[:, 1] - difference[:, 0]))
    return found


def _over_others(cells: Floats, *axes: int) -> Floats:
    """Mean over all factors but these; the tasks stay."""
    others = tuple(axis for axis in range(1, cells.ndim) if axis not in axes)
    return cells.mean(axis=others) if others else cells
