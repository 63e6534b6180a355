"""Scores of one run each, and the same scores as means of several seeds, so that all over tasks stays as it was."""

import numpy as np
import pandas as pd

from analysis.manifests.designs import Design
from analysis.settings import Settings
from analysis.tables.compared_pairs import compare_pairs
from analysis.tables.comparison import Comparison


def by_seed(scores, seeds=3, sd=0.0004):
    """Return [..., seeds]: seeds stray from the scores, and their mean is the scores; one seed is the scores."""
    scores = np.asarray(scores, dtype=np.float64)
    stray = np.random.default_rng(7).normal(0, sd if seeds > 1 else 0, (*scores.shape, seeds))
    return scores[..., None] + stray - stray.mean(axis=-1, keepdims=True)


def long_frame(cube, designs, tasks):
    """The scores [designs, tasks, seeds] as the comparisons read them: one row a score."""
    place = pd.MultiIndex.from_product([designs, tasks, map(str, range(cube.shape[2]))])
    named = pd.DataFrame({"score": cube.ravel()}, index=place).rename_axis(["design", "task", "seed"])
    return named.reset_index()


def compared(scores, designs, types, control="", **changes):
    """What sections read of scores [designs, tasks, seeds], nan where a design lacks a seed.

    designs: names `pooler-attn`. types: type -> tasks. changes: of the settings.
    """
    tasks = [task for of_type in types.values() for task in of_type]
    blocks = types if len(types) == 1 else {**types, "All": tasks}
    frame, settings = long_frame(scores, list(designs), tasks).dropna(), Settings(scores=(), **changes)
    matrix = pd.DataFrame(np.nanmean(scores, axis=2).T, index=tasks, columns=list(designs))
    named = {name: Design(name, "", *name.partition("-")[::2]) for name in designs}
    pairs = compare_pairs(matrix, blocks, settings, control, frame)
    return Comparison(settings, named, control, types, blocks, frame, matrix, pairs)


def write_long(path, scores, designs, types, seeds=1, **how):
    """Write scores [designs, tasks] as `by_seed` spreads them. types: task -> type."""
    frame = long_frame(by_seed(scores, seeds, **how), list(designs), list(types))
    frame = frame.assign(type=frame["task"].map(types)).rename(columns={"design": "model"})
    frame.to_csv(path, index=False)
    return path


def run_seeds(study, design, scores, seeds=1, **changes):
    """Write so many runs of a design, whose mean scores are `scores`."""
    spread = by_seed(list(scores.values()), seeds)
    for seed in range(seeds):
        study.run(design, dict(zip(scores, spread[:, seed].tolist(), strict=True)), seed=seed, **changes)
