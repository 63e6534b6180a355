"""Effects of several degrees of freedom over tasks and seeds: level and power of three tests.

    python -m benchmarks.calibrate.effect_seed_level [sets=400]

Simulated poolers x 2 attentions x tasks x seeds without the effect under test, then with one; one design varies four
times as much with the seed as the others. Printed, in per cent, is how often the sign flips over tasks reject at .05,
and how often they and a test over seeds do: F with the plain degrees of freedom, F with Box's epsilon (what is used),
the largest of the tests of pairs of levels after Bonferroni, and Hotelling's with Satterthwaite's degrees of freedom in
the direction of the mean (Yao 1965). docs/decisions/factorial-effects.md quotes it.
"""

from functools import cache
from itertools import product

import numpy as np
from scipy.special import fdtrc

from analysis.statistics.arrays import Floats
from analysis.statistics.contrasts import effect_contrasts
from analysis.statistics.interaction import effect_over_seeds
from analysis.statistics.seeds import over_tasks_and_seeds, two_sided
from analysis.statistics.sign_flip import counted_p, sign_patterns
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.seed_coverage import PARTS, SPREADS, STRAYS, Part, Spread
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

EFFECTS = {"pooler": ("pooler",), "pooler x attn": ("pooler", "attn")}
SHIFT = 0.01  # of the pooler, or of its difference between the attentions
FLIPS = 499


def main() -> None:
    """Print a table of levels and one of power."""
    sets = number_of_sets(400)
    tests = ("tasks alone", "F, plain", "F, epsilon", "largest pair", "Hotelling")
    columns = ("levels", "tasks", "seeds", "sd task, seed, rest", "effect", *tests)
    print_head("parts", *columns, texts=6)
    rows = product(PARTS, (3, 6), (8, 40, 56), (3, 5, 10), SPREADS)
    shown = [row for row in rows if row[2] == 40 or row[:2] == ("normal", 3)]
    for part, levels, tasks, seeds, spread in shown:
        if part == "normal" or levels == 3:
            rates = rejected(PARTS[part], np.zeros(levels), tasks, seeds, spread, sets=sets)
            for effect, shares in rates.items():
                print_row(part, levels, tasks, seeds, ", ".join(map(str, spread)), effect, *per_cent(shares))
    print()
    print_head("levels differ", *columns, texts=6)
    for shift, levels, seeds, spread in product(("one", "all"), (3, 6), (3, 5, 10), SPREADS[1:3]):
        steps = np.linspace(0, 1, levels) if shift == "all" else np.arange(levels) == levels - 1
        rates = rejected(PARTS["normal"], SHIFT * steps, 40, seeds, spread, sets=sets)
        for effect, shares in rates.items():
            print_row(shift, levels, 40, seeds, ", ".join(map(str, spread)), effect, *per_cent(shares))


def rejected(part: Part, shift: Floats, tasks: int, seeds: int, spread: Spread, *, sets: int) -> dict[str, Floats]:
    """Return effect -> shares of the sets that the flips reject, and that they and each test over seeds do.

    shift: of each level of the pooler with the second attention, so that both effects are there.
    """
    contrasts, strays = effect_contrasts({"pooler": len(shift), "attn": 2}), np.ones((len(shift), 2, 1, 1))
    strays[0, 1] = STRAYS
    strays, moved = strays / np.sqrt((strays**2).mean()), np.stack([0 * shift, 2 * shift], axis=1)[..., None, None]
    rejections: dict[str, list[list[bool]]] = {name: [] for name in EFFECTS}
    rng = np.random.default_rng([len(shift), tasks, seeds])  # each row by itself
    for _ in range(sets):
        shapes = zip(spread, ((tasks, 1), (1, seeds), (tasks, seeds)), strict=True)
        task, seed, rest = (
            sd / np.sqrt(2) * part(rng, (2 * len(shift), *shape)).reshape(len(shift), 2, *shape) for sd, shape in shapes
        )
        cube = task + strays * seed + rest + moved
        for name, effect in EFFECTS.items():
            vectors = np.einsum("cts,ck->tks", cube.reshape(-1, tasks, seeds), contrasts[effect])
            over_tasks = flipped(vectors.mean(axis=2)) <= 0.05
            of_levels = cube.mean(axis=1) if name == "pooler" else cube[:, 1] - cube[:, 0]
            p = _over_seeds(vectors, of_levels)
            rejections[name].append([over_tasks, *(over_tasks & (p <= 0.05))])
    return {name: np.mean(rows, axis=0) for name, rows in rejections.items()}


def _over_seeds(vectors: Floats, of_levels: Floats) -> Floats:
    """Return the four p. vectors: contrasts [tasks, df, seeds]; of_levels: scores [levels, tasks, seeds]."""
    test, df = effect_over_seeds(vectors), vectors.shape[1]
    plain = fdtrc(df, test.df_error_seeds * df / test.df_seeds, test.F_seeds)
    first, second = np.triu_indices(len(of_levels), k=1)
    pairs = two_sided(over_tasks_and_seeds(of_levels, first, second, alone=True))
    return np.array([plain, test.p_seeds, min(1.0, len(pairs) * pairs.min()), _hotelling(vectors)])


def _hotelling(vectors: Floats) -> float:
    """p of the mean vector by the whole covariance; 1 where its degrees of freedom are fewer than the contrasts."""
    (tasks, df, seeds), mean = vectors.shape, vectors.mean(axis=(0, 2))
    by_task, by_seed = vectors.mean(axis=2), vectors.mean(axis=0)
    left = vectors - by_task[:, :, None] - by_seed + mean[:, None]
    both = np.cov(by_task.T) / tasks + np.cov(by_seed) / seeds
    rest = np.einsum("tks,tls->kl", left, left) / ((tasks - 1) * (seeds - 1) * tasks * seeds)
    covariance = both - rest if np.linalg.eigvalsh(both - rest)[0] > 0 else both
    towards = np.linalg.solve(covariance, mean)
    along = np.einsum("tks,k->ts", vectors, towards)
    free = over_tasks_and_seeds(np.stack([0 * along, along]), np.array([0]), np.array([1])).df_seeds[0]
    over = free - df + 1
    return float(fdtrc(df, over, mean @ towards * over / (free * df))) if over > 0 else 1.0


@cache
def _patterns(tasks: int) -> tuple[list[Floats], int, bool]:
    patterns, flips, exact = sign_patterns(tasks, FLIPS, exact_up_to=9)
    return list(patterns), flips, exact


def flipped(vectors: Floats) -> float:
    """p of `sign_flip` with fewer patterns."""
    patterns, flips, exact = _patterns(len(vectors))
    least = (vectors.sum(axis=0) ** 2).sum() * (1 - 1e-10)
    return float(counted_p(sum((((s @ vectors) ** 2).sum(axis=1) >= least).sum() for s in patterns), flips, exact))


if __name__ == "__main__":
    guard(main)
