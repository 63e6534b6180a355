"""Noise of seeds: spread of run means, and runs of one design against each other, counted by scipy's tests."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import t, ttest_ind, wilcoxon

from analysis.tables.means import means_table
from analysis.tables.seeds import same_design, section
from tests.analysis.three_seeds import compared

TASKS = [f"t{k}" for k in range(12)]


def of_runs(scores):
    """scores [designs, tasks, seeds], nan where a design lacks a seed."""
    return compared(scores, [f"m{k}" for k in range(len(scores))], {"STS": TASKS})


def drawn(seeds, draw=2):
    """Two designs that vary with the seed."""
    rng = np.random.default_rng(draw)
    return rng.normal(0.5, 0.02, (2, 12, 1)) + rng.normal(0, 0.02, (2, 12, seeds)) + rng.normal(0, 0.02, (2, 1, seeds))


def test_means_have_their_interval_over_seeds():
    scores = drawn(4)
    scores[1, :, 3] = np.nan
    table = means_table(of_runs(scores)).set_index("design")
    for k, seeds in enumerate((4, 3)):
        runs, row = scores[k, :, :seeds].mean(axis=0), table.loc[f"m{k}"]
        assert (row["mean"], row["sd_runs"]) == pytest.approx((runs.mean(), runs.std(ddof=1)))
        assert row["n_seeds"] == seeds
        assert row["high"] - row["mean"] == pytest.approx(t.isf(0.025, seeds - 1) * runs.std(ddof=1) / seeds**0.5)


def test_every_split_is_counted():
    scores = drawn(3)
    found = [
        wilcoxon(runs[:, i] - runs[:, j], method="exact").pvalue <= 0.05
        for runs in scores
        for i, j in combinations(range(3), 2)
    ]
    (note,) = same_design(of_runs(scores))
    assert "(6 ways)" in note
    assert f"{100 * np.mean(found):.1f} %" in note
    assert "over tasks and seeds" not in note


def test_with_six_runs_the_primary_test_is_tried_too():
    """The tasks of a design are the same, so without a rest the test over seeds is Welch's over the seeds' means."""
    seeds = np.array([[0, 0.1, 0.001, 0.11, 0.03, 0.12, 0.06], [0, 0.1, 0.2, 0.3, 0.1, 0.05, 0.01]])
    scores = np.random.default_rng(2).normal(0.5, 0.02, (2, 12, 1)) + seeds[:, None, :]
    found = []
    for runs in scores:
        for one in combinations(range(7), 3):
            for other in combinations(sorted({*range(7)} - {*one}), 3):
                if one < other:
                    means = runs[:, one].mean(axis=0), runs[:, other].mean(axis=0)
                    found.append(ttest_ind(*means, equal_var=False).pvalue <= 0.05)
    (note,) = same_design(of_runs(scores))
    assert "(140 ways)" in note
    assert f"the test over tasks and seeds in {100 * np.mean(found):.1f} %" in note


def test_one_run_and_copies_of_one_have_no_noise():
    assert section(of_runs(drawn(1))) is None
    assert same_design(of_runs(np.repeat(drawn(1), 3, axis=2))) == []
