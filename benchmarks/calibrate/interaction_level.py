"""The level of the tests of design x type: `python -m benchmarks.calibrate.interaction_level [sets=400]`

Five designs whose differences are alike on all types. First over tasks, types spreading alike or not: raw vectors dealt
out to the types in another order, by the plain F and by Welch's statistic, and what is left of each type's mean, by
Welch's (what is used). Then over seeds, one design with four times the others' seed effect: over tasks alone, F without
and with Box's epsilon, and both tests together. Rejections at .05 in per cent; last, the power over tasks where two
designs are one standard deviation ahead on two types each. docs/decisions/design-by-type.md quotes it.
"""

import numpy as np
from scipy.special import fdtrc

from analysis.statistics.arrays import Floats
from analysis.statistics.contrasts import helmert
from analysis.statistics.interaction import over_seeds, permuted, welch
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

DRAWS, DESIGNS = 299, 5
UNEVEN, ODD, SEVEN, FIVE = (8, 8, 8, 16), (8, 8, 3, 2, 10, 9), (8,) * 7, (8,) * 5
Sizes = tuple[int, ...]
Spread = tuple[float, ...]
SIZED: tuple[tuple[Sizes, Spread], ...] = (  # tasks per type, and their spread as multiples
    (UNEVEN, (1, 1, 1, 1)),
    (UNEVEN, (4, 1, 1, 1)),
    (UNEVEN, (1, 1, 1, 4)),
    (UNEVEN, (4, 2, 1, 0.5)),
    (SEVEN, (1,) * 7),
    (SEVEN, (4, *[1] * 6)),
    (ODD, (0.5, 1, 2, 4, 1, 1)),
)
NOISES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t(3)": lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3),
    "designs": lambda rng, shape: rng.normal(size=shape) * np.array([10.0, 1, 1, 1, 1]) / np.sqrt(20.8),
}
OVER_SEEDS: tuple[tuple[Sizes, Spread, Spread], ...] = (
    (FIVE, (1,) * 5, (0.02, 0.0, 0.01)),
    (FIVE, (1,) * 5, (0.02, 0.005, 0.01)),
    (FIVE, (1,) * 5, (0.02, 0.015, 0.01)),
    (SEVEN, (0.5, 0.5, 1, 1, 1, 2, 2), (0.02, 0.005, 0.01)),
    (SEVEN, (0.5, 0.5, 1, 1, 1, 2, 2), (0.02, 0.015, 0.01)),
    (UNEVEN, (4, 1, 1, 1), (0.02, 0.005, 0.01)),
    (UNEVEN, (1, 1, 1, 4), (0.02, 0.005, 0.01)),
    (ODD, (1,) * 6, (0.02, 0.005, 0.01)),
)
POWER: tuple[Spread, ...] = ((1,) * 5, (0.5, 0.5, 1, 1, 2), (2, 2, 1, 1, 0.5))


def main() -> None:
    """Print the three tables."""
    sets, rng, contrasts = number_of_sets(400), np.random.default_rng(0), helmert(DESIGNS)
    names = ("tasks per type", "spread of types")
    print_head(*names, "noise", "raw, plain F", "raw, Welch", "what is left, Welch", texts=3)
    for sizes, spread in SIZED:
        scale = np.repeat(spread, sizes)[:, None]
        for name, noise in NOISES.items():
            vectors = (scale * noise(rng, (sets, sum(sizes), DESIGNS))) @ contrasts
            p = [[*_raw(each, sizes, rng), permuted(each, sizes, DRAWS).p] for each in vectors]
            print_row(*_named(sizes, spread), name, *_rejections(p))
    print()
    print_head(*names, "sd task, seed, rest", "tasks alone", "F, plain", "F", "both", texts=3)
    for sizes, spread, sd in OVER_SEEDS:
        rejected = [_both(_with_seeds(rng, sizes, spread, sd) @ contrasts, sizes) for _ in range(sets)]
        print_row(*_named(sizes, spread), ", ".join(map(str, sd)), *_rejections(rejected))
    print()
    print_head(*names, "power, what is left", texts=2)
    ahead = np.zeros((5, DESIGNS))
    ahead[:2, 0] = ahead[2:4, 1] = 1.0
    for spread in POWER:
        scale, shift = np.repeat(spread, FIVE)[:, None], np.repeat(ahead, FIVE, axis=0)
        vectors = (scale * rng.normal(size=(sets, sum(FIVE), DESIGNS)) + shift) @ contrasts
        print_row(*_named(FIVE, spread), *_rejections([[permuted(each, FIVE, DRAWS).p] for each in vectors]))


def _raw(vectors: Floats, sizes: Sizes, rng: np.random.Generator) -> tuple[float, float]:
    """Return p of the plain F and of Welch's statistic where the tasks as they are go to the types in another order."""
    starts, counts = np.cumsum([0, *sizes[:-1]]), np.array(sizes)
    orders = rng.permuted(np.tile(np.arange(len(vectors)), (DRAWS + 1, 1)), axis=1)
    orders[0] = np.arange(len(vectors))
    dealt = vectors[orders]
    sums, squares = (np.add.reduceat(part, starts, axis=1) for part in (dealt, (dealt**2).sum(axis=2)))
    between = ((sums / counts[:, None]) ** 2 * counts[:, None]).sum(axis=(1, 2))  # the rest of F follows from it
    statistics = (between, welch(sums, squares, counts)[0])
    return tuple(float((each >= each[0] * (1 - 1e-10)).mean()) for each in statistics)  # type: ignore[return-value]


def _with_seeds(rng: np.random.Generator, sizes: Sizes, spread: Spread, sd: Spread) -> Floats:
    """Return scores [tasks, 3 seeds, designs]; sd of task, design x type x seed and rest; the first design strays."""
    of, strays = np.repeat(np.arange(len(sizes)), sizes), np.array([4.0, 1, 1, 1, 1])
    task = sd[0] * np.array(spread)[of, None, None] * rng.normal(size=(len(of), 1, DESIGNS))
    seed = sd[1] * strays * rng.normal(size=(len(sizes), 3, DESIGNS))[of]
    return np.asarray(task + seed + sd[2] * rng.normal(size=(len(of), 3, DESIGNS)))


def _both(vectors: Floats, sizes: Sizes) -> list[float]:
    """Return p over tasks, of F with plain degrees of freedom, of F, and the larger of the first and the last."""
    tasks, seeds = permuted(vectors.mean(axis=1), sizes, DRAWS).p, over_seeds(vectors.transpose(0, 2, 1), sizes)
    df = (DESIGNS - 1) * (len(sizes) - 1)
    plain = float(fdtrc(df, seeds.df_error_seeds * df / seeds.df_seeds, seeds.F_seeds))
    return [tasks, plain, seeds.p_seeds, max(tasks, seeds.p_seeds)]


def _named(sizes: Sizes, spread: Spread) -> tuple[str, str]:
    return f"{len(sizes)} x {sizes[0]}" if len(set(sizes)) == 1 else ", ".join(map(str, sizes)), ", ".join(
        map(str, spread)
    )


def _rejections(p: list[list[float]]) -> list[str]:
    return per_cent((np.array(p) <= 0.05).mean(axis=0))


if __name__ == "__main__":
    guard(main)
