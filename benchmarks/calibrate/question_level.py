"""What three questions tell by chance: `python -m benchmarks.calibrate.question_level [sets=400]`

Designs over tasks and seeds, normal parts: task .02, rest .01, seed .003; *stray*: of the last design .012; *loud*: of
all .01. Errors in per cent, of sets in which any is made:

* *best*: two designs are level on every type of eight tasks and a third is .02 behind, yet one is told the best of a
  type; power: the share of types whose best is told where one design is .02 ahead;
* *order*: three designs on two bases, level on the second, one ahead by .03 on the first, yet a pair is told alike or
  opposite on both, 40 tasks; power: that one is .02 ahead on the first and .02 behind on the second, and told opposite;
* *margin*: three designs, .01 apart, yet a pair's least margin of equivalence is below its difference, 40 tasks;
  width: the mean of that margin, in thousandths.

docs/calibration.md quotes it.
"""

from itertools import product

import numpy as np
import pandas as pd

from analysis.manifests.designs import Design
from analysis.questions import same_order
from analysis.questions.best_by_type import best_by_type
from analysis.questions.compared_pairs import ALL, compare_pairs
from analysis.questions.equivalence import equivalence_table
from analysis.questions.question import Material
from analysis.settings import Settings
from analysis.statistics.arrays import Floats
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

TASK, REST = 0.02, 0.01
WORLDS = {"usual": (0.003, 0.003), "stray": (0.003, 0.012), "loud": (0.01, 0.01)}  # seed: of a design, of the last
SEEDS, TYPES, PER_TYPE, TASKS = (3, 5, 10), (2, 5), 8, 40
AHEAD = 0.02


def main() -> None:
    """Print a Markdown table."""
    sets = number_of_sets(400)
    of_types = [f"{kind}, {types} types" for types in TYPES for kind in ("best", "power")]
    print_head("world", "seeds", *of_types, "order", "power", "margin", "width")
    for (world, spread), seeds in product(WORLDS.items(), SEEDS):
        rng, rows = np.random.default_rng(0), list[list[float]]()
        for _ in range(sets):
            best = [told_best(rng, spread, seeds, types, ahead) for types in TYPES for ahead in (0.0, AHEAD)]
            wrong = told_order(rng, spread, seeds, (0.03, 0.0)) != 0
            opposite = told_order(rng, spread, seeds, (AHEAD, -AHEAD)) < 0
            rows.append(
                [best[0] > 0, best[1], best[2] > 0, best[3], wrong, opposite, *least_margin(rng, spread, seeds)]
            )
        *shares, width = np.mean(rows, axis=0)
        print_row(world, seeds, *per_cent(np.array(shares)), f"{1000 * width:.1f}")


def drawn(rng: np.random.Generator, means: Floats, spread: tuple[float, float], tasks: int, seeds: int) -> Floats:
    """Return scores [designs, tasks, seeds] around `means` [designs, 1 or tasks]."""
    designs = len(means)
    of_seed = np.where(np.arange(designs) < designs - 1, *spread)[:, None, None] * rng.normal(size=(designs, 1, seeds))
    of_task = TASK * rng.normal(size=(designs, tasks, 1))
    return np.asarray(means[:, :, None] + of_task + of_seed + REST * rng.normal(size=(designs, tasks, seeds)))


def material(cube: Floats, designs: dict[str, Design], types: dict[str, list[str]], settings: Settings) -> Material:
    """Return what the questions read: the scores [designs, tasks, seeds], compared on every type."""
    tasks = [task for of_type in types.values() for task in of_type]
    names = pd.MultiIndex.from_product([designs, tasks, map(str, range(cube.shape[2]))])
    frame = pd.DataFrame({"score": cube.ravel()}, names.rename(["design", "task", "seed"])).reset_index()
    matrix = pd.DataFrame(cube.mean(axis=2).T, tasks, list(designs))
    pairs = compare_pairs(matrix, types, settings, frame=frame, sizes=False)
    pairs = pairs.assign(ahead=np.sign(pairs["w_plus"] - pairs["w_minus"]))  # of a test that passes
    return Material(settings, designs, "", types, types, frame, matrix, pairs)


def told_best(rng: np.random.Generator, spread: tuple[float, float], seeds: int, types: int, ahead: float) -> float:
    """Return the share of types on which a design is told the best; the first is `ahead` of the second."""
    kinds = {f"type{k}": [f"type{k}task{n}" for n in range(PER_TYPE)] for k in range(types)}
    cube = drawn(rng, np.array([[ahead], [0.0], [-AHEAD]]), spread, types * PER_TYPE, seeds)
    of = material(cube, {name: Design(name) for name in "abc"}, kinds, Settings(scores=(), family="table"))
    return float(best_by_type(of.pairs, of.matrix, kinds, of.settings)["told"].mean())


def told_order(rng: np.random.Generator, spread: tuple[float, float], seeds: int, ahead: tuple[float, float]) -> int:
    """Return 1 where a pair is told alike on two bases, -1 where one is told opposite, else 0.

    The first of three designs is `ahead` on the first and on the second base.
    """
    cells = {f"{name} {base}": (name, base) for base, name in product(("one", "two"), "abc")}
    designs = {
        label: Design(label, factors={"pooler": name, "model.path": base}) for label, (name, base) in cells.items()
    }
    means = np.array([[ahead[0]], [0.0], [0.0], [ahead[1]], [0.0], [0.0]])
    parts = [drawn(rng, of_base, spread, TASKS, seeds) for of_base in np.split(means, 2)]
    of = material(np.concatenate(parts), designs, {ALL: [f"t{k}" for k in range(TASKS)]}, Settings(scores=()))
    crossing = same_order.crossing_of(of)
    assert crossing is not None
    outcomes = set(same_order.pairs_by_level(of, of.matrix[crossing.designs], crossing, of.settings)["outcome"])
    return -1 if same_order.OPPOSITE in outcomes else int(same_order.ALIKE in outcomes)


def least_margin(rng: np.random.Generator, spread: tuple[float, float], seeds: int) -> tuple[bool, float]:
    """Return whether the least margin of a pair is below its difference, .01 or .02, and the mean of the margins."""
    cube = drawn(rng, np.array([[0.0], [0.01], [0.02]]), spread, TASKS, seeds)
    tasks = {ALL: [f"t{k}" for k in range(TASKS)]}
    table = equivalence_table(material(cube, {name: Design(name) for name in "abc"}, tasks, Settings(scores=())))
    apart = np.where((table["first"] == "a") & (table["second"] == "c"), 0.02, 0.01)
    return bool((table["smallest_margin"] < apart - 1e-9).any()), float(table["smallest_margin"].mean())


if __name__ == "__main__":
    guard(main)
