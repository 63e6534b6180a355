"""Level of the tests of `analysis`, by simulation of designs that are equally good, on the variances of stored runs.

    python -m benchmarks.calibrate                                       # some minutes
    python -m benchmarks.calibrate sets=1000 scores=my/scores.csv        # on the variances of runs at hand

A score is task + design x task + a seed of the design + a rest, all random. Printed, in per cent, is how often a test
finds a difference at .05 although there is none: of one pair (the control and the last design), any of the pairs with
the control, and any of all pairs, the families after Holm. A rate of r has a standard error of sqrt(r (1 - r) / sets);
of Wilcoxon's test and of F a fifth of the sets is drawn.
scores: a csv with the columns model, seed, task, type and score, the control first; all runs of all designs.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.scores.tasks import source_of
from analysis.statistics.arrays import Bools, Floats, Ints
from analysis.statistics.contrasts import effect_contrasts, helmert
from analysis.statistics.interaction import effect_over_seeds, over_seeds
from analysis.statistics.power import components
from analysis.statistics.seeds import Spreads, pair_test, spreads, two_sided
from analysis.statistics.wilcoxon import signed_rank
from cli.errors import UserError, guard, nearest, reading

ALPHA, SEEDS, STORED = 0.05, (3, 5, 10), "results/ten_seeds/scores.csv.gz"
AT_ONCE = 250  # sets held in memory
EFFECTS = {"pooler": 3, "attn": 2}  # crossed by the designs beside the control
Part = Callable[[np.random.Generator, tuple[int, ...]], Floats]  # draws numbers of mean 0 and variance 1


@dataclass(frozen=True)
class Spread:
    """Standard deviations of a score: `task` of design x task, `seeds` [D] of each design's seeds, `rest`.

    `types`, `packages`: the places of each task. `of_types`, `of_packages`: the shares of task's variance that lie
    between types, whose effects are fixed and sum to 0, and of what is left between packages, whose are random.
    """

    task: float
    seeds: Floats
    rest: float
    types: Ints
    packages: Ints
    of_types: float = 0.0
    of_packages: float = 0.0

    def drawn(self, rng: np.random.Generator, part: Part, sets: int, seeds: int) -> Floats:
        """Return scores [sets, D, T, seeds] of designs without a difference in their mean."""
        shape = sets, len(self.seeds), len(self.types)
        by_type, by_package = (part(rng, (*shape[:2], of.max() + 1))[..., of] for of in (self.types, self.packages))
        by_type = (by_type - by_type.mean(axis=2, keepdims=True)) / np.sqrt(1 - 1 / (1 + self.types.max()))
        of_types, of_packages = self.of_types, (1 - self.of_types) * self.of_packages
        own = np.sqrt(1 - of_types - of_packages) * part(rng, shape)
        by_task = np.sqrt(of_types) * by_type + np.sqrt(of_packages) * by_package + own
        of_seeds = self.seeds[:, None, None] * part(rng, (*shape[:2], 1, seeds))
        return self.task * by_task[..., None] + of_seeds + self.rest * part(rng, (*shape, seeds))


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw normal numbers."""
    return rng.normal(size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw exponential numbers, turned round for every second design, so that differences of neighbours are skewed."""
    turned = (-1.0) ** np.arange(shape[1]).reshape(-1, *[1] * (len(shape) - 2))
    return np.asarray(turned * (rng.exponential(size=shape) - 1))


def spread_of(path: Path) -> Spread:
    """Return the spreads of the runs in a csv. Raises `UserError` for a file that is none."""
    with reading(path, "Give a csv with the columns model, seed, task, type and score."):
        table = pd.read_csv(path)
        wide = table.pivot_table(index=["model", "task"], columns="seed", values="score", sort=False).dropna(axis=1)
        cube = wide.to_numpy().reshape(wide.index.get_level_values("model").nunique(), -1, wide.shape[1])
        tasks = wide.index.get_level_values("task")[: cube.shape[1]]
        types = table.drop_duplicates("task").set_index("task")["type"].loc[tasks]
    packages = np.array([source_of(task) for task in tasks])
    places = [pd.factorize(labels)[0].astype(np.int64) for labels in (types.to_numpy(), packages)]
    return spread_from(spreads(cube), *places)


def spread_from(of: Spreads, types: Ints, packages: Ints) -> Spread:
    """Return the spreads of runs, means over designs but for `seeds`; the rest's share in run means is taken off."""
    tasks, (first, second) = of.means.shape[1], np.triu_indices(len(of.means), k=1)
    rest = of.of_rest * of.counts * tasks
    seeds = np.sqrt(np.maximum(0.0, of.of_seeds * of.counts - rest / tasks))
    task = np.sqrt(components(of, first, second).of_tasks.mean() / 2)
    left = of.means[second] - of.means[first]
    shares = []
    for groups in (types, packages):
        left = left - left.mean(axis=1, keepdims=True)
        alike = (groups[:, None] == groups) & ~np.eye(tasks, dtype=bool)
        products = np.einsum("pt,pu,tu->", left, left, alike / max(1, alike.sum()))
        shares.append(float(np.clip(products / (left**2).mean(axis=1).sum(), 0, 1)))
        for group in range(groups.max() + 1):
            left[:, groups == group] -= left[:, groups == group].mean(axis=1, keepdims=True)
    return Spread(float(task), seeds, float(np.sqrt(rest.mean())), types, packages, *shares)


def worlds(of: Spread) -> dict[str, tuple[Spread, Part]]:
    """Return name -> spreads and distribution."""
    equal = np.full_like(of.seeds, np.sqrt((of.seeds**2).mean()))
    last, control = equal.copy(), equal.copy()
    last[-1], control[0] = 4 * equal[0], 4 * equal[0]
    alone = replace(of, of_types=0.0, of_packages=0.0)
    return {
        "own spreads": (alone, normal),
        "equal": (replace(alone, seeds=equal), normal),
        "last 4 x as noisy": (replace(alone, seeds=last), normal),
        "control 4 x as noisy": (replace(alone, seeds=control), normal),
        "skewed": (alone, skewed),
        f"types {of.of_types:.2f}, packages {of.of_packages:.2f}": (of, normal),
        f"packages {of.of_packages:.2f}": (replace(of, of_types=0.0), normal),
    }


def families(p: Floats, first: Ints, second: Ints) -> Floats:
    """Return the shares of rejections of p [sets, P]: of one pair, any with the control, any of all, after Holm."""
    held, last = first == 0, second.max()
    found: list[Bools] = [p[:, held & (second == last)] <= ALPHA]
    found += [p[:, of].min(axis=1) * of.sum() <= ALPHA for of in (held, first >= 0)]  # Holm's first step
    return np.array([each.mean() for each in found])


def levels(of: Spread, sets: int) -> Iterator[dict[str, str]]:
    """Yield one row per world and number of seeds; Wilcoxon's test and F on a fifth of the sets, which take longest."""
    for name, (spread, part) in worlds(of).items():
        for seeds in SEEDS:
            rng, quick, slow = np.random.default_rng(seeds), list[Floats](), list[Floats]()
            blocks = -(-sets // AT_ONCE)
            for block in range(blocks):  # of one size: their shares are averaged
                cube = spread.drawn(rng, part, sets // blocks, seeds)
                quick.append(_over_both(cube, of.packages))
                if block < blocks / 5:
                    slow.append(np.concatenate([_wilcoxon(cube), _effects(cube, of.types)]))
            heads = [f"{test}{what}" for test in ("", "Wilcoxon ") for what in ("one pair", "any with control", "any")]
            heads.insert(3, "packages as units, any with control")
            shares = np.concatenate([np.mean(quick, axis=0), np.mean(slow, axis=0)])
            row = dict(zip([*heads, "pooler", "pooler x attn", "design x type"], shares, strict=False))
            yield {"world": name, "seeds": str(seeds)} | {head: f"{100 * share:.1f}" for head, share in row.items()}


def _over_both(cube: Floats, packages: Ints) -> Floats:
    """Return the shares of rejections of the primary test, then of any with the control and packages as units."""
    first, second = np.triu_indices(cube.shape[1], k=1)
    members = np.eye(packages.max() + 1)[packages].T
    means = np.einsum("gt,ndts->ndgs", members / members.sum(axis=1, keepdims=True), cube)
    p, by_package = (two_sided(pair_test(spreads(scores), first, second)) for scores in (cube, means))
    return np.append(families(p, first, second), families(by_package, first, second)[1])


def _wilcoxon(cube: Floats) -> Floats:
    first, second = np.triu_indices(cube.shape[1], k=1)
    means = cube.mean(axis=3)
    p = signed_rank((means[:, second] - means[:, first]).reshape(-1, means.shape[2])).p
    return families(p.reshape(len(cube), -1), first, second)


def _effects(cube: Floats, types: Ints) -> Floats:
    """Return the shares of rejections of the F tests over tasks and seeds, where six designs beside the control cross
    EFFECTS, else none. The last, of design x type, is no null where types have effects."""
    if cube.shape[1] != 7:
        return np.empty(0)
    contrasts, order, sizes = effect_contrasts(EFFECTS), np.argsort(types, kind="stable"), np.bincount(types).tolist()
    found = []
    for scores in cube[:, 1:]:
        of = spreads(scores)
        p = [effect_over_seeds(of, contrasts[effect]).p_seeds for effect in (("pooler",), ("pooler", "attn"))]
        found.append([*p, over_seeds(scores[:, order], helmert(6), sizes).p_seeds])
    return (np.array(found) <= ALPHA).mean(axis=0)


def main() -> None:
    """Print the table."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return
    keys = {"sets": "10000", "scores": STORED}
    for word in sys.argv[1:]:
        key, equals, value = word.partition("=")
        if key not in keys or not equals:
            raise UserError(f"There is no key '{key}'. {nearest(key, keys)}")
        keys[key] = value
    if not keys["sets"].isdigit() or int(keys["sets"]) < 1:
        raise UserError(f"sets={keys['sets']} must be a whole number above 0.")
    for place, row in enumerate(levels(spread_of(Path(keys["scores"])), int(keys["sets"]))):
        lines = [list(row), ["---"] * len(row)] if place == 0 else []
        print("\n".join(f"| {' | '.join(cells)} |" for cells in [*lines, list(row.values())]), flush=True)


if __name__ == "__main__":
    guard(main)
