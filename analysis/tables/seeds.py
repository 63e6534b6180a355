"""Noise of seeds: how far the mean of a run moves with its seed, and runs of one design compared as two designs."""

from itertools import combinations

import numpy as np
import pandas as pd

from analysis.render import Section
from analysis.statistics.arrays import Ints
from analysis.statistics.correction import passes
from analysis.statistics.seeds import FEWEST_SEEDS, FEWEST_TASKS, compare_runs, copies, two_sided
from analysis.statistics.wilcoxon import signed_rank
from analysis.tables.compared_pairs import seed_cube
from analysis.tables.comparison import Comparison
from analysis.tables.means import means_table

MOST, DRAW = 300, 0  # splits of a design's runs; beyond them so many at random, with this seed


def section(compared: Comparison) -> Section | None:
    """Return the spread of run means, and the comparison of a design with itself; None where no design has two runs."""
    table = means_table(compared)
    table = table[(table["type"] == compared.last) & (table["sd_runs"].notna())].set_index("design")
    if table.empty:
        return None
    highest, rest = compared.highest(max(1, compared.settings.rows_shown))
    kept = [label for label in highest if label in table.index]
    rows, score = table.loc[kept], compared.unit.score
    shown = pd.DataFrame({"Design": list(map(compared.design_text, kept)), "Seeds": rows["n_seeds"].tolist()})
    names = {"sd_runs": "SD of run means", "lowest_run": "Lowest run", "highest_run": "Highest run"}
    shown = shown.assign(**{title: rows[name].to_numpy() for name, title in names.items()})
    caption = f"Standard deviation over seeds of the mean over {compared.over}, and the means of the extreme runs."
    formats = dict.fromkeys(names.values(), score)
    made = compared.table("seeds", "Noise of seeds", caption, shown, formats=formats, rest=rest)
    return Section("seeds", "Noise of seeds", [made], notes=same_design(compared))


def same_design(compared: Comparison) -> list[str]:
    """Return one sentence: how often the tests find a difference between two halves of the runs of one design."""
    cube = seed_cube(compared.frame, compared.matrix)
    runs = [of[:, ~np.isnan(of).any(axis=0)] for of in cube[~copies(cube)]]
    runs = [of for of in runs if of.shape[1] > 1]
    if not runs:
        return []
    side, settings = min(of.shape[1] for of in runs) // 2, compared.settings
    tasks, seeds = [], []
    for of in runs:
        scores = of[:, splits(of.shape[1], side)].transpose(1, 0, 2)  # splits, tasks, runs of both sides
        one, other = scores[..., :side], scores[..., side:]
        ranks = signed_rank(other.mean(axis=2) - one.mean(axis=2))
        tasks.append(passes(ranks.p, settings.alpha))
        if side >= FEWEST_SEEDS and len(of) >= FEWEST_TASKS:
            seeds.append(passes(two_sided(compare_runs(one, other)), settings.alpha))
    both = f", the test over tasks and seeds in {100 * np.concatenate(seeds).mean():.1f} %" if seeds else ""
    return [
        f"Runs of one design against each other, {side} on either side ({sum(map(len, tasks)):,} ways), differ in the"
        f" seed alone: at {settings.alpha:g} Wilcoxon over tasks finds a difference in"
        f" {100 * np.concatenate(tasks).mean():.1f} %{both}."
    ]


def splits(runs: int, side: int, most: int = MOST) -> Ints:
    """Return [splits, 2 side]: all ways to take two sides out of `runs` runs, or `most` of them at random."""
    every = []
    for first in combinations(range(runs), side):
        rest = sorted(set(range(first[0] + 1, runs)) - set(first))  # the side with the earliest run is the first
        every += [(*first, *second) for second in combinations(rest, side)]
        if len(every) > most:
            draw = np.random.default_rng(DRAW)
            return np.stack([draw.permutation(runs)[: 2 * side] for _ in range(most)])
    return np.array(every).reshape(-1, 2 * side)
