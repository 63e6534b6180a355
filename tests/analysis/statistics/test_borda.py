"""Borda ranks against mteb's own and counting by hand; the bootstrap against all resamples of few tasks."""

from itertools import product

import numpy as np
import pytest

from analysis.statistics.borda import RESAMPLES, borda


def mteb_ranks(values):
    """What mteb's leaderboard computes."""
    import polars
    from mteb.benchmarks._create_table import _get_borda_rank

    columns = [f"t{task}" for task in range(len(values))]
    return polars.DataFrame(values, schema=columns, orient="col").select(_get_borda_rank(columns)).to_series().to_list()


@pytest.mark.parametrize("decimals", [6, 1])
def test_ranks_are_those_of_mtebs_leaderboard(decimals):
    values = np.round(np.random.default_rng(0).normal(0.5, 0.2, (9, 30)), decimals)
    assert borda(values, resamples=10).rank.tolist() == mteb_ranks(values)


def test_points_are_designs_beaten_and_half_of_those_equalled():
    values = np.round(np.random.default_rng(1).uniform(size=(6, 5)), 1)
    points = [sum((v[j] > v[i]) + 0.5 * (v[j] == v[i]) for v in values for i in range(5) if i != j) for j in range(5)]
    assert borda(values).points.tolist() == points


def test_bootstrap_agrees_with_all_resamples():
    """With five tasks there are 5^5 equally likely resamples."""
    values = np.array([[3, 2, 1, 0], [0, 3, 2, 1], [3, 1, 2, 0], [1, 1, 3, 0], [2, 3, 0, 1.0]])
    found = borda(values)
    per_task = np.array([[sum((a > b) + 0.5 * (a == b) for b in v) - 0.5 for a in v] for v in values])
    totals = per_task[np.array(list(product(range(5), repeat=5)))].sum(axis=1)
    best = totals == totals.max(axis=1, keepdims=True)
    first = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    assert found.first == pytest.approx(first, abs=4 * np.sqrt(0.25 / RESAMPLES))
    assert found.first.sum() == pytest.approx(1)
    ranks = 1 + (totals[:, None, :] > totals[:, :, None]).sum(axis=2)
    narrow = borda(values, level=0.5)
    for ends, probability in ((found.low, 0.025), (found.high, 0.975), (narrow.low, 0.25), (narrow.high, 0.75)):
        for design, end in enumerate(ends):  # a quantile: no more mass below it, no less up to it
            assert (ranks[:, design] < end).mean() <= probability + 0.01
            assert (ranks[:, design] <= end).mean() >= probability - 0.01


def test_ties_share():
    found = borda(np.tile([[0.3], [0.7]], (3, 3)))
    assert found.rank.tolist() == [1, 1, 1]
    assert found.first == pytest.approx(np.full(3, 1 / 3))
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1, 1], [1, 1, 1])


def test_a_clear_order_is_certain():
    found = borda(np.tile([0.1, 0.5, 0.4], (10, 1)))
    assert (found.rank.tolist(), found.first.tolist()) == ([3, 1, 2], [0, 1, 0])
    assert (found.low.tolist(), found.high.tolist()) == ([3, 1, 2], [3, 1, 2])
    assert found.points.tolist() == [0, 20, 10]


def test_chunks_do_not_change_the_ranks(monkeypatch):
    values = np.random.default_rng(4).normal(size=(12, 6))
    whole = borda(values, resamples=500)
    monkeypatch.setattr("analysis.statistics.borda.CHUNK", 60)
    assert borda(values, resamples=500).first.tolist() == whole.first.tolist()
