"""The level of the tests on average ranks: `python -m benchmarks.calibrate.rank_level [sets=4000]`

First without any effect: how often Friedman's test and its post hocs reject at .05. Then two designs among eight
others: how often each test tells the two apart, where they are equal and where they differ. docs/decisions/rankings.md
quotes it.
"""

import numpy as np
from scipy import stats

from analysis.statistics.friedman import null_distribution
from analysis.statistics.ranks import against_control, nemenyi_distance, task_ranks
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

SIZES = ((3, 5), (3, 8), (5, 3), (5, 6), (5, 8), (5, 40), (10, 3), (10, 8), (10, 41))
TASKS = 20
PAIRS = (  # of designs; their difference and noise; by how much the others are ahead
    ("equal, as noisy as the others", 0.0, 1.0, 0.0),
    ("equal, three times as noisy", 0.0, 3.0, 0.0),
    ("equal", 0.0, 1.0, 50.0),
    ("different", 0.8, 1.0, 0.4),
    ("different", 0.8, 1.0, 50.0),
)


def level(rng: np.random.Generator, k: int, n: int, sets: int) -> list[float]:
    """Return the shares of null sets that chi2, F, the exact p, Nemenyi (any pair) and Holm (any design) reject."""
    sums = rng.permuted(np.broadcast_to(np.arange(1, k + 1), (sets, n, k)), axis=2).sum(axis=1)
    w = 12 * ((sums - n * (k + 1) / 2) ** 2).sum(axis=1) / (n**2 * k * (k**2 - 1))
    f = (n - 1) * w / np.maximum(1 - w, 1e-300)
    exact = np.full(sets, np.nan)
    counted = null_distribution(np.tile(2 * np.arange(1, k + 1), (n, 1)))
    if counted is not None:
        observed, place = np.unique((4 * sums**2).sum(axis=1), return_inverse=True)
        exact = np.array([counted[1][counted[0] >= value].sum() <= 0.05 for value in observed])[place]
    rejected = [
        stats.chi2.sf(n * (k - 1) * w, k - 1) <= 0.05,
        stats.f.sf(f, k - 1, (k - 1) * (n - 1)) <= 0.05,
        exact,
        np.ptp(sums / n, axis=1) >= nemenyi_distance(k, n, 0.05),
        [np.nanmin(against_control(row / n, n, 0)["p_holm"]) <= 0.05 for row in sums],
    ]
    return [float(np.mean(by_test)) for by_test in rejected]


def among_others(rng: np.random.Generator, difference: float, spread: float, others: float) -> tuple[bool, bool]:
    """Return whether z of average ranks and the signed-rank test tell two designs apart, eight more being in the table.

    Noise of the eight is 1; of the two `spread`; the second is ahead by `difference`, the eight by `others`.
    """
    scores = rng.normal(size=(TASKS, 10)) * np.array([spread] * 2 + [1] * 8)
    scores += np.array([0, difference] + [others] * 8)
    by_rank = against_control(task_ranks(scores).mean(axis=0), TASKS, 0)["p"][1]
    return bool(by_rank <= 0.05), bool(signed_rank((scores[:, 1] - scores[:, 0])[None]).p[0] <= 0.05)


def main() -> None:
    """Print two Markdown tables, rejections at .05 in per cent."""
    sets, rng = number_of_sets(4000), np.random.default_rng(0)
    print_head("designs", "tasks", "chi2", "F", "exact p", "Nemenyi, any pair", "Holm, any design", texts=0)
    for k, n in SIZES:
        print_row(k, n, *(rate.replace("nan", "-") for rate in per_cent(level(rng, k, n, sets))))
    print()
    print_head("the two designs", "the eight others", "z of average ranks", "signed-rank", texts=2)
    for what, *case in PAIRS:
        rates = np.mean([among_others(rng, *case) for _ in range(sets)], axis=0)
        print_row(what, "far ahead" if case[2] > 10 else "around them", *per_cent(rates))


if __name__ == "__main__":
    guard(main)
