"""Measured error rates of the tests and intervals (docs/calibration.md), so that a report says where they fall short.

Rates at 5 % and coverages of 95 % intervals by number of tasks: python -m benchmarks.calibrate.calibration, 2026-11-21.
"""

import numpy as np

from analysis.grids.formats import fraction
from analysis.statistics.arrays import Floats

ByTasks = dict[int, float]


# Coverage of the mean on differences of published models as they are; Hodges-Lehmann: of the pseudomedian.
COVERAGE: dict[str, ByTasks] = {
    "bootstrap percentile": {5: 0.808, 8: 0.863, 12: 0.888, 20: 0.910, 41: 0.927, 60: 0.935},
    "bootstrap BCa": {5: 0.800, 8: 0.842, 12: 0.864, 20: 0.896, 41: 0.920, 60: 0.930},
    "bootstrap-t": {8: 0.922, 12: 0.918, 20: 0.925, 41: 0.933, 60: 0.940},
    "t": {5: 0.943, 8: 0.943, 12: 0.940, 20: 0.939, 41: 0.944, 60: 0.943},
    "Hodges-Lehmann": {8: 0.954, 12: 0.957, 20: 0.953, 41: 0.954, 60: 0.949},
}
NOMINAL, TOLERANCE = 0.95, 0.01

# False positives where the mean is zero and the skewness 2, and there the coverage of the mean by two intervals.
SKEWED_SIGNED_RANK: ByTasks = {8: 0.086, 12: 0.092, 20: 0.122, 41: 0.194, 60: 0.257}
SKEWED_PERMUTATION: ByTasks = {8: 0.098, 12: 0.090, 20: 0.080, 41: 0.071, 60: 0.064}
SKEWED_HODGES_LEHMANN: ByTasks = {8: 0.910, 12: 0.913, 20: 0.877, 41: 0.808, 60: 0.740}
SKEWED_T: ByTasks = {5: 0.879, 8: 0.889, 12: 0.912, 20: 0.918, 41: 0.929, 60: 0.939}
STRONG_SKEWNESS = 1.0

# False positives of the signed-rank test with tasks in blocks of four, by the correlation within a block.
RELATED_SIGNED_RANK: dict[float, ByTasks] = {
    0.3: {8: 0.143, 12: 0.142, 20: 0.157, 41: 0.159, 60: 0.163},
    0.6: {8: 0.237, 12: 0.232, 20: 0.251, 41: 0.226, 60: 0.231},
}
RELATED = 0.1  # intraclass correlation from which the report warns


def at(table: ByTasks, n: int) -> float:
    """Return the rate at `n` tasks, on the line between the nearest numbers measured; beyond them, at the end.

    The nearest smaller number measured would be too kind a one: 12 % of 20 tasks for 40, where 19 % holds.
    """
    return float(np.interp(n, sorted(table), [table[size] for size in sorted(table)]))


def _where(table: ByTasks, n: int) -> str:
    """Return "n = 41"; where nothing was measured there, between which numbers it lies or what the last one is."""
    known = min(max(n, min(table)), max(table))
    if known in table:
        return f"n = {known}" + (", the most measured; with more tasks it moves on" if n > known else "")
    below, above = max(size for size in table if size < known), min(size for size in table if size > known)
    return f"n = {known}, between {below} and {above} as measured"


def coverage_note(method: str, n: int) -> list[str]:
    """Return a warning where that interval falls short by more than a point with `n` heavy-tailed differences.

    On the differences of the embedded study, whose tails are normal, Student's t interval held 95 %.
    """
    rate = at(COVERAGE[method], n)
    if rate >= NOMINAL - TOLERANCE:
        return []
    centre = "its centre" if method == "Hodges-Lehmann" else "the mean"
    return [
        f"The {method} interval holds {centre} in about {_percent(rate)} instead of 95 % of samples (at"
        f" {_where(COVERAGE[method], n)} on differences of published models, which have heavy tails as these"
        " have)."
    ]


def skew_note(skewness: Floats, n: int) -> list[str]:
    """Return a warning where some of the pairs [P] have strongly skewed differences over `n` tasks."""
    error = np.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3))) if n > 2 else np.inf
    strong = int((np.abs(np.nan_to_num(skewness)) > max(STRONG_SKEWNESS, 2 * error)).sum())
    if not strong:
        return []
    tables = (SKEWED_SIGNED_RANK, SKEWED_PERMUTATION, SKEWED_HODGES_LEHMANN, SKEWED_T)
    rate, of_mean, centre, student = (_percent(at(table, n)) for table in tables)
    return [
        f"The differences of {strong:,} of {len(skewness):,} pairs are strongly skewed (beyond 1 and two standard"
        " errors). The signed-rank test then asks whether the typical difference is zero, not the mean: where the mean"
        f" is zero and the skewness 2 it rejected {rate} instead of 5 %, a permutation test of the mean"
        f" {of_mean} (at {_where(SKEWED_SIGNED_RANK, n)}); the Hodges-Lehmann interval held the mean in"
        f" {centre}, Student's t in {student}."
    ]


def related_note(correlation: Floats, n: int) -> list[str]:
    """Return a warning where tasks of one type resemble one another: `correlation` [P] within types, `n` tasks."""
    known = correlation[~np.isnan(correlation)]
    median = float(np.median(known)) if len(known) else 0.0
    if median < RELATED:
        return []
    rho = 0.3 if median <= 0.3 else 0.6  # the next that was measured, not the one before
    rate = _percent(at(RELATED_SIGNED_RANK[rho], n))
    return [
        "Over all tasks the tests take tasks to be independent, but differences of tasks of one type resemble one"
        f" another (intraclass correlation {fraction(round(median, 2))} at the median over pairs). In blocks of four"
        f" tasks with a correlation of {fraction(rho)} the signed-rank test rejected {rate} instead of 5 %."
    ]


def _percent(rate: float) -> str:
    return f"{100 * rate:.0f} %"
