"""A pair tested again and again as seeds are added: when it is looked at, p of one look, and p over all looks.

docs/decisions/seeds-auto.md gives the reasons.
"""

from functools import lru_cache

import numpy as np
from scipy.special import stdtr

from analysis.statistics.arrays import Floats, Ints
from analysis.statistics.equivalence import one_sided
from analysis.statistics.seeds import FEWEST_SEEDS, outside, over_tasks_and_seeds, two_sided
from analysis.statistics.wilcoxon import signed_rank

FIRST_WEIGHT = 0.001  # with three seeds p is to be a thousand times smaller than later
SHARES = (0.0, 0.1, 0.2, 0.4)  # error that tasks cause, in spreads over seeds: the worst lies near .125 for all looks
DRAWS, DRAW = 200_000, 0  # simulated series of seeds, and their random seed


def planned(most: int) -> tuple[int, ...]:
    """Return the numbers of seeds at which pairs are tested, each twice the one before: (3, 6, 10) of ten."""
    looks = [FEWEST_SEEDS]
    while looks[-1] < most:
        looks.append(min(most, 2 * looks[-1]))
    return tuple(looks)


def p_of_look(cube: Floats, first: Ints, second: Ints, margin: float) -> dict[str, Floats]:
    """Return of the pairs `second` - `first` [P] the mean `difference` and four p.

    cube: [designs, tasks, seeds], complete, FEWEST_SEEDS or more. `p_tasks` (signed-rank, seed means as scores) and
    `p_seeds` (the mean over tasks and seeds) are of a difference, the former 1 where the two point to different sides;
    `within_tasks` and `within_seeds`, the same of one-sided tests, of equivalence within the margin. The p over seeds
    are 1 where nothing can be said of other seeds: one task, or copies of one run; they are of the pair alone, since
    `over_looks` knows how often those are small by chance.
    """
    means = cube.mean(axis=2)
    differences, seeds = means[second] - means[first], over_tasks_and_seeds(cube, first, second, alone=True)
    test = signed_rank(differences)
    over_seeds = {"p_seeds": two_sided(seeds), "within_seeds": outside(seeds, margin)}
    alike = np.sign(test.w_plus - test.w_minus) == np.sign(seeds.mean_seeds)
    of_tasks = {"p_tasks": np.where(alike, test.p, 1.0), "within_tasks": np.maximum(*one_sided(differences, margin))}
    of_seeds = {name: np.nan_to_num(p, nan=1.0) for name, p in over_seeds.items()}
    return {"difference": differences.mean(axis=1), **of_tasks, **of_seeds}


def over_looks(p: Floats, seeds: int, looks: tuple[int, ...]) -> Floats:
    """Return p over all `looks`, given p of the one at `seeds` seeds.

    p: over tasks and seeds. What is returned is the probability that the smallest p of all looks, that of the first
    taken a thousandfold, is at most this one where there is no difference. So a study that stops at the first look at
    which it is at most alpha is wrong with a probability of at most alpha. Simulated with normal parts (`_smallest`),
    the worst of `SHARES`.
    """
    weighted = p / _weight(seeds, looks)
    return np.max([1 + np.searchsorted(of, weighted, side="right") for of in _smallest(looks)], axis=0) / (1 + DRAWS)


def boundary(alpha: float, seeds: int, looks: tuple[int, ...]) -> float:
    """Return the largest p of the look at `seeds` seeds that is `alpha` over all `looks`."""
    return float(_smallest(looks)[:, int(alpha * (1 + DRAWS)) - 2].min() * _weight(seeds, looks))


def _weight(seeds: int, looks: tuple[int, ...]) -> float:
    return FIRST_WEIGHT if seeds == looks[0] < looks[-1] else 1.0


@lru_cache
def _smallest(looks: tuple[int, ...]) -> Floats:
    """Return the smallest weighted p [share, draw] of series of seeds without a difference, sorted.

    p of a look is as `two_sided` makes it of many tasks: mean = tasks + mean of n normal seeds of spread 1, its squared
    error share^2 + s^2 / n, with the degrees of freedom of Satterthwaite, who takes s^2 to be better known than it is.
    """
    draw = np.random.default_rng(DRAW)
    tasks, seeds = draw.normal(size=DRAWS), draw.normal(size=(looks[-1], DRAWS))
    smallest = np.full((len(SHARES), DRAWS), np.inf)
    for n in looks:
        mean, of_seeds = seeds[:n].mean(axis=0), seeds[:n].var(axis=0, ddof=1) / n
        for least, share in zip(smallest, SHARES, strict=True):
            squared = share**2 + of_seeds
            freedom = (n - 1) * (squared / of_seeds) ** 2
            p = 2 * stdtr(freedom, -np.abs(share * tasks + mean) / np.sqrt(squared))
            np.minimum(least, p / _weight(n, looks), out=least)
    return np.sort(smallest, axis=1)
