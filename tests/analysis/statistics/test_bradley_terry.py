"""Strengths against the likelihood maximised by scipy, points against mteb's Borda ranks, ranks against counting."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t

from analysis.statistics.bradley_terry import PSEUDO, strengths


def by_scipy(scores, ties):
    """Maximise the sum over tasks and pairs of log P, with PSEUDO wins each way, over strengths and log nu."""
    k, pairs = scores.shape[1], list(combinations(range(scores.shape[1]), 2))

    def loss(at):
        total = 0.0
        for i, j in pairs:
            weights = np.array([at[i], at[j], at[k] + (at[i] + at[j]) / 2 if ties else -np.inf])
            logs = weights - np.logaddexp.reduce(weights)
            i_ahead, j_ahead = (scores[:, i] > scores[:, j]).sum(), (scores[:, i] < scores[:, j]).sum()
            total += (i_ahead + PSEUDO) * logs[0] + (j_ahead + PSEUDO) * logs[1]
            total += (len(scores) - i_ahead - j_ahead) * logs[2] if ties else 0.0
        return -total

    found = minimize(loss, np.zeros(k + 1), method="BFGS", options={"gtol": 1e-9}).x[:k]
    return found - found.mean()


@pytest.mark.parametrize("decimals", [6, 1])
def test_strengths_maximise_the_likelihood(decimals):
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal([0, 0.1, 0.2, 0.5], 0.3, (15, 4)), decimals)
    ties = any((scores[:, i] == scores[:, j]).any() for i, j in combinations(range(4), 2))
    assert ties == (decimals == 1)
    assert strengths(scores).strength == pytest.approx(by_scipy(scores, ties), abs=1e-5)


def test_two_designs_have_the_logit_of_their_wins_and_its_error():
    """9 wins of 12, half a win each way: log 9.5 / 3.5; the variance of the model is 1 / (13 p q)."""
    scores = np.array([[0.0, 1.0]] * 9 + [[1.0, 0.0]] * 3)
    found = strengths(scores)
    apart = np.log(9.5 / 3.5)
    assert found.strength == pytest.approx([-apart / 2, apart / 2])
    assert expit(apart) == pytest.approx(9.5 / 13)
    reach = t.ppf(0.975, 11) * np.sqrt(1 / (13 * 9.5 / 13 * 3.5 / 13)) / 2
    assert found.high - found.strength == pytest.approx([reach, reach], rel=0.03)


@pytest.mark.parametrize("decimals", [6, 1])
def test_points_rank_as_mtebs_leaderboard_does(decimals):
    import polars
    from mteb.benchmarks._create_table import _get_borda_rank

    scores = np.round(np.random.default_rng(0).normal(0.5, 0.2, (9, 30)), decimals)
    columns = [f"t{task}" for task in range(9)]
    frame = polars.DataFrame(scores, schema=columns, orient="col")
    found = strengths(scores)
    assert found.rank.tolist() == frame.select(_get_borda_rank(columns)).to_series().to_list()
    points = [sum((v[j] > v[i]) + 0.5 * (v[j] == v[i]) for v in scores for i in range(30) if i != j) for j in range(30)]
    assert found.points.tolist() == points


def test_a_clear_order_is_sure_and_equal_designs_share():
    clear = strengths(np.tile([0.1, 0.5, 0.4], (40, 1)))
    assert (clear.rank.tolist(), clear.rank_low.tolist(), clear.rank_high.tolist()) == ([3, 1, 2],) * 3
    same = strengths(np.tile([[0.3], [0.7]], (3, 3)))
    assert same.strength == pytest.approx(np.zeros(3), abs=1e-9)
    assert (same.rank.tolist(), same.rank_low.tolist(), same.rank_high.tolist()) == ([1] * 3, [1] * 3, [3] * 3)


def test_few_tasks_make_no_order_sure_and_more_tasks_narrow_it():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(200, 5)) + np.arange(5) / 4
    few, many = strengths(values[:8]), strengths(values)
    assert (many.rank_high - many.rank_low).sum() < (few.rank_high - few.rank_low).sum()
    assert ((few.rank_low <= few.rank) & (few.rank <= few.rank_high)).all()
    assert ((many.high - many.low) < (few.high - few.low)).all()
