"""How often any of seven effects is told of designs where there is none, with the spreads of runs at hand.

    python -m benchmarks.calibrate.effect_family docs/tables/ten_seeds.csv.gz [sets=500]

Twelve designs, 2 poolers x 2 attentions x 3 ways to read tokens, in the worlds of `seed_family`, of which they are
drawn; in *stray* one of the twelve varies four times as much. *program*: over tasks and seeds as tables have it; *own
seeds*: with the effect's own mean square of seeds alone, as until 97d2c1a. Told .01: of the attention where it
brings that much to every design. docs/decisions/factorial-effects.md quotes it.
"""

import sys
from itertools import product

import numpy as np

from analysis.statistics.arrays import Bools, Floats
from analysis.statistics.contrasts import effect_contrasts
from analysis.statistics.correction import holm
from analysis.statistics.interaction import effect_over_seeds
from analysis.statistics.seed_errors import contrast_spread
from benchmarks.arguments import folder_first, taken_out
from benchmarks.calibrate.effect_seed_level import flipped
from benchmarks.calibrate.seed_family import ALPHA, SEEDS, WORLDS, drawn, read_runs
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

LEVELS, AHEAD = {"pooler": 2, "attn": 2, "tokens": 3}, 0.01
CONTRASTS = effect_contrasts(LEVELS)
RULES = ("own seeds", "program")


def main() -> None:
    """Print a Markdown table, all in per cent."""
    scores = read_runs(folder_first("docs/tables/ten_seeds.csv.gz", or_file=True))
    sets, _ = taken_out(sys.argv[1:], "sets", 500)
    columns = ("one effect", f"any of {len(CONTRASTS)}", f"told {AHEAD:g}")
    print_head("world", "seeds", *(f"{column}: {rule}" for column in columns for rule in RULES))
    attention, ahead = list(CONTRASTS).index(("attn",)), AHEAD * np.tile(np.repeat([0, 1], 3), 2)[:, None, None]
    for world, seeds in product(WORLDS, SEEDS):
        rng, counts = np.random.default_rng(1), np.zeros((len(columns), len(RULES)))
        for _ in range(sets):
            equal = twelve(scores, world, seeds, rng)
            none, moved = p_of_effects(equal), p_of_effects(equal + ahead)
            for k in range(len(RULES)):
                alone, any_of = (np.maximum(none[0], none[1 + k]) <= ALPHA).mean(), told(none[0], none[1 + k]).any()
                counts[:, k] += [float(alone), float(any_of), float(told(moved[0], moved[1 + k])[attention])]
        print_row(world, seeds, *per_cent((counts / sets).ravel()))


def twelve(scores: Floats, world: str, seeds: int, rng: np.random.Generator) -> Floats:
    """Return [12, tasks, seeds] of two draws from `world` in random order; of *stray* one design strays."""
    again = drawn(scores, "alike" if world == "stray" else world, seeds, rng)
    both = np.concatenate([drawn(scores, world, seeds, rng)[::-1], again])  # the one that strays comes first
    return both[rng.permutation(np.prod(list(LEVELS.values())))]


def p_of_effects(cube: Floats) -> Floats:
    """Return p [3, effects]: over tasks, and over tasks and seeds by each of RULES."""
    vectors = [np.einsum("cts,ck->tks", cube, columns) for columns in CONTRASTS.values()]
    over_tasks = [flipped(of_effect.mean(axis=2)) for of_effect in vectors]
    over_seeds = [[effect_over_seeds(v, of_all).p_seeds for v in vectors] for of_all in (np.nan, contrast_spread(cube))]
    return np.array([over_tasks, *over_seeds])


def told(over_tasks: Floats, over_seeds: Floats) -> Bools:
    """Return which effects pass both, each after Holm."""
    return np.maximum(holm(over_tasks), holm(over_seeds)) <= ALPHA


if __name__ == "__main__":
    guard(main)
