"""Rates at which `study.py seeds=auto` tells over all its looks, also where nothing differs, and after how many seeds.

    python -m benchmarks.calibrate.looks_level sets=2000

Ten seeds at most; the difference of two designs has a part per task, one per seed (alike on all tasks) and a rest, with
the standard deviations shown, normal, skewed, or of unequal spread, as in `seed_coverage`. First one pair: *told* where
the true difference is 0 and *equivalent* where it is the margin or more are errors; beside them what three seeds of
each design, or ten, tell in one test. Then sets of seven designs that do not differ: any of six told apart from the
first. docs/decisions/seeds-auto.md quotes both. For real runs: `benchmarks.calibrate.looks_replayed`.
"""

from itertools import product

import numpy as np

from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.correction import holm, passes
from analysis.statistics.looks import over_looks, p_of_look, planned
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.seed_coverage import PARTS, SPREADS, Part, Spread
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

MOST, MARGIN, ALPHA = 10, 0.005, 0.05
EFFECTS = (0.0, 0.005, 0.01, 0.02)
OURS = (0.02, 0.005, 0.01)  # about the spreads of the study
FAMILY = 7  # designs


def main() -> None:
    """Print both tables."""
    sets, rng = number_of_sets(2000), np.random.default_rng(1)
    columns = ("told", "equivalent", "mean seeds", "3 seeds: told", "equivalent", "10 seeds: told", "equivalent")
    names = ("parts", "tasks", "sd task, seed, rest")
    print_head(*names, "difference", *columns, texts=3)
    for name, tasks, spread in product(PARTS, (8, 40), (*SPREADS, OURS)):
        scores = drawn(PARTS[name], (sets, 2, tasks), spread, rng)
        for effect in EFFECTS:
            moved = scores + effect * np.arange(2)[:, None, None]
            told, same, seeds = decided(moved, planned(MOST))
            fixed = [share for n in (3, MOST) for share in decided(moved[..., :n], (n,))[:2]]
            shares = per_cent(share.mean() for share in (told, same, *fixed))
            spreads = ", ".join(map(str, spread))
            print_row(name, tasks, spreads, effect, *shares[:2], f"{seeds.mean():.1f}", *shares[2:])
    print()
    print_head(*names, "any of six told", "3 seeds: told", "10 seeds: told", texts=3)
    for name, tasks, spread in product(PARTS, (8, 40), (*SPREADS, OURS)):
        scores = drawn(PARTS[name], (-(-sets // 2), FAMILY, tasks), spread, rng)
        ways = ((scores, planned(MOST)), (scores[..., :3], (3,)), (scores, (MOST,)))
        any_told = (decided(of, looks)[0].any(axis=1).mean() for of, looks in ways)
        print_row(name, tasks, ", ".join(map(str, spread)), *per_cent(any_told))


def drawn(part: Part, size: tuple[int, int, int], spread: Spread, rng: np.random.Generator) -> Floats:
    """Return scores [*size, MOST] without a difference. size: sets, designs, tasks; spread: of two designs apart."""
    sets, designs, tasks = size
    shapes = ((tasks, 1), (1, MOST), (tasks, MOST))
    parts = (sd / np.sqrt(2) * part(rng, (sets * designs, *shape)) for sd, shape in zip(spread, shapes, strict=True))
    return np.asarray(sum(parts)).reshape(*size, MOST)


def decided(scores: Floats, looks: tuple[int, ...]) -> tuple[Bools, Bools, Floats]:
    """Return which pairs [sets, designs - 1] are told, which equivalent, and after how many seeds, or all.

    scores: [sets, designs, tasks, seeds]. `analysis.looks.Looks` for many sets at once; one look is the usual rule.
    """
    sets, designs = scores.shape[:2]
    first = np.repeat(np.arange(sets) * designs, designs - 1)
    second = np.delete(np.arange(sets * designs), np.arange(sets) * designs)
    shape = (sets, designs - 1)
    told, same = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    used, kept = np.full(shape, float(looks[-1])), {name: np.ones(shape) for name in ("p", "within")}
    over_tasks = {name: np.ones(shape) for name in kept}
    for seeds in looks:
        tests = p_of_look(scores[..., :seeds].reshape(-1, *scores.shape[2:3], seeds), first, second, MARGIN)
        tests = {name: values.reshape(shape) for name, values in tests.items()}
        is_open, passed = ~(told | same), {}
        for kind, p in kept.items():
            of_seeds = tests[f"{kind}_seeds"]
            p[is_open] = (over_looks(of_seeds, seeds, looks) if len(looks) > 1 else of_seeds)[is_open]
            over_tasks[kind][is_open] = tests[f"{kind}_tasks"][is_open]
            both = [np.apply_along_axis(holm, 1, values) for values in (over_tasks[kind], p)]
            passed[kind] = is_open & passes(np.maximum(*both), ALPHA)
        told |= passed["p"]
        same |= passed["within"] & ~passed["p"]
        used[is_open & (told | same)] = seeds
    return told, same, used


if __name__ == "__main__":
    guard(main)
