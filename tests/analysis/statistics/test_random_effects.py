"""A pair as a meta-analysis of tasks: against statsmodels, scipy's roots and likelihoods, closed forms, resampling."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq, minimize_scalar
from sklearn.metrics import average_precision_score
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.oneway import anova_oneway

from analysis.statistics.items import item_variances
from analysis.statistics.random_effects import random_effects
from benchmarks.calibrate.random_effects_coverage import reml

MANY = 1e9  # degrees of freedom of a variance that is known
ONE, TWO = np.array([0]), np.array([1])


def tasks(k, tau, seed=0, sets=4):
    """Differences and unequal variances [sets, k]."""
    rng = np.random.default_rng(seed)
    v = rng.uniform(0.01, 0.2, (sets, k))
    return 0.1 + tau * rng.normal(size=(sets, k)) + np.sqrt(v) * rng.normal(size=(sets, k)), v


def sum_of_squares(tau2, y, v):
    return ((y - np.average(y, weights=1 / (v + tau2))) ** 2 / (v + tau2)).sum()


def restricted(tau2, y, v):
    """Minus twice the restricted log-likelihood."""
    w = 1 / (v + tau2)
    return sum_of_squares(tau2, y, v) - np.log(w).sum() + np.log(w.sum())


@pytest.mark.parametrize("tau", [0, 0.5])
@pytest.mark.parametrize("k", [2, 8, 40])
def test_equals_statsmodels(k, tau):
    y, v = tasks(k, tau)
    found = random_effects(y, v, np.full(k, MANY))
    for row in range(len(y)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on intervals of single tasks, which nobody asks for here
            theirs = combine_effects(y[row], v[row], method_re="iterated", use_t=True)
            rows = theirs.summary_frame().loc[["random effect", "random effect wls"]].to_numpy()[:, :4]
        mean, error, low, high = max(
            rows, key=lambda row: row[1]
        )  # Hartung and Knapp's, or the items' where it is more
        ours = [found.mean[row], found.error[row], found.low[row], found.high[row]]
        assert ours == pytest.approx([mean, error, low, high], abs=1e-6)
        assert found.tau[row] ** 2 == pytest.approx(theirs.tau2, abs=1e-6)
        assert (found.q[row], found.i2[row]) == pytest.approx((theirs.q, max(0, theirs.i2)))
        assert found.p_q[row] == pytest.approx(theirs.test_homogeneity().pvalue, abs=1e-6)
        assert found.p[row] == pytest.approx(2 * stats.t.sf(abs(mean / error), k - 1), rel=1e-4)


def test_tau_and_its_interval_are_roots_of_the_weighted_sum_of_squares():
    y, v = tasks(12, 0.5)
    found = random_effects(y, v, np.full(12, MANY), 0.9)
    targets = {"tau": 11, "tau_low": stats.chi2.ppf(0.95, 11), "tau_high": stats.chi2.ppf(0.05, 11)}
    for name, target in targets.items():
        for row, tau in enumerate(getattr(found, name)):
            at_zero = sum_of_squares(0, y[row], v[row])
            wanted = brentq(lambda t: sum_of_squares(t, y[row], v[row]) - target, 0, 50) if at_zero > target else 0  # noqa: B023
            assert tau**2 == pytest.approx(wanted, abs=1e-9)


def test_variances_alike_give_students_interval_and_the_likelihoods_tau():
    y, v = tasks(9, 0.6)
    v[:] = 0.05
    assert (y.var(axis=1, ddof=1) > 0.05).all()
    found = random_effects(y, v, np.full(9, MANY), 0.9)
    for row in range(len(y)):
        student = stats.ttest_1samp(y[row], 0)
        ends = student.confidence_interval(0.9)
        assert (found.low[row], found.high[row], found.p[row]) == pytest.approx((ends.low, ends.high, student.pvalue))
        closed = max(0, y[row].var(ddof=1) - 0.05)
        brute = minimize_scalar(restricted, (0, 5), args=(y[row], v[row]), bounds=(0, 5), options={"xatol": 1e-10}).x
        assert found.tau[row] ** 2 == pytest.approx(closed, abs=1e-9)
        assert found.tau[row] ** 2 == pytest.approx(brute, abs=1e-6)


def test_tau_is_near_that_of_the_likelihood_where_tasks_are_many():
    y, v = tasks(2000, 0.3)
    brute = [
        minimize_scalar(restricted, args=one, bounds=(0, 5), options={"xatol": 1e-10}).x
        for one in zip(y, v, strict=True)
    ]
    np.testing.assert_allclose(reml(y, v), brute, atol=1e-7)  # what the calibration compares with
    np.testing.assert_allclose(random_effects(y, v, np.full(2000, MANY)).tau ** 2, brute, rtol=0.05)


def test_without_noise_of_items_a_further_task_is_one_more_draw():
    y, _ = tasks(7, 1)
    found = random_effects(y, np.full(y.shape, 1e-12), np.full(7, MANY))
    reach = stats.t.ppf(0.975, 6) * y.std(axis=1, ddof=1) * np.sqrt(1 + 1 / 7)
    np.testing.assert_allclose([found.new_low, found.new_high], [y.mean(axis=1) - reach, y.mean(axis=1) + reach])
    np.testing.assert_allclose(found.i2, 1, atol=1e-9)


def test_p_of_q_is_welchs_analysis_of_variance_of_the_items():
    rng = np.random.default_rng(3)
    groups = [rng.normal(0.5 * (k == 0), 1 + k, 5 + 3 * k) for k in range(6)]
    y, v = (np.array([[f(g) for g in groups]]) for f in (np.mean, lambda g: g.var(ddof=1) / len(g)))
    found = random_effects(y, v, np.array([len(g) - 1.0 for g in groups]))
    assert found.p_q[0] == pytest.approx(anova_oneway(groups, use_var="unequal").pvalue)


def test_a_variance_of_zero_counts_as_the_smallest_other_one():
    y, v = tasks(6, 0.2)
    smallest = v.copy()
    v[:, 2] = 0
    smallest[:, 2] = v[:, [0, 1, 3, 4, 5]].min(axis=1)
    for a, b in zip(*(vars(random_effects(y, one, np.full(6, 50.0))).values() for one in (v, smallest)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_tasks_that_are_all_alike():
    found = random_effects(np.array([[0.0] * 5, [0.25] * 5]), np.full((2, 5), 0.01), np.full(5, MANY))
    assert (found.tau.tolist(), found.i2.tolist(), found.p[0]) == ([0, 0], [0, 0], 1)
    reach = stats.t.ppf(0.975, 4) * np.sqrt(0.01 / 5)  # items' noise stays
    assert (found.low[1], found.high[1], found.new_high[1]) == pytest.approx((0.25 - reach, 0.25 + reach, 0.25 + reach))


def predictions(n, seeds=2, seed=4):
    rng = np.random.default_rng(seed)
    truth = np.round(rng.uniform(0, 5, n))
    return truth + rng.normal(size=(2, seeds, n)) * np.array([1, 2])[:, None, None], truth


def test_variance_of_a_mean_is_that_of_the_items_with_seeds_averaged_first():
    values = np.random.default_rng(5).normal(size=(2, 3, 30))
    found = item_variances("mean", values, np.zeros(0), ONE, TWO)
    d = values[1] - values[0]
    assert found.variance[0] == pytest.approx(stats.sem(d.mean(axis=0)) ** 2)
    assert found.freedom == 29
    rest = d - d.mean(axis=0) - d.mean(axis=1, keepdims=True) + d.mean()
    assert found.with_seed[0] == pytest.approx((rest**2).sum() / (29 * 2) / (30 * 3))
    same_runs = np.repeat(values[:, :1], 3, axis=1)  # three seeds that say the same are no more items than one
    one, three = (item_variances("mean", runs, np.zeros(0), ONE, TWO) for runs in (values[:, :1], same_runs))
    assert three.variance[0] == pytest.approx(one.variance[0])
    assert (one.with_seed[0], three.with_seed[0]) == (0, pytest.approx(0, abs=1e-15))


@pytest.mark.parametrize("kind", ["spearman", "average_precision"])
def test_variance_of_a_rank_statistic_is_the_jackknife_written_out(kind):
    values, truth = predictions(25)
    truth = truth if kind == "spearman" else (truth > 2).astype(float)

    def differences(kept):
        def one(x):
            if kind == "spearman":
                return stats.spearmanr(x[kept], truth[kept]).statistic
            return average_precision_score(truth[kept], x[kept])

        return np.array([one(b) - one(a) for a, b in zip(*values, strict=True)])

    strayed = np.array([differences(np.delete(np.arange(25), k)) for k in range(25)]) - differences(np.arange(25))
    found = item_variances(kind, values, truth, ONE, TWO)
    assert found.variance[0] == pytest.approx(24 / 25 * (strayed.mean(axis=1) ** 2).sum())
    alone = [item_variances(kind, values[:, [k]], truth, ONE, TWO).variance[0] for k in range(2)]
    assert found.with_seed[0] == pytest.approx(np.mean(alone) - found.variance[0])
    assert found.freedom == 24


@pytest.mark.parametrize("groups", [500, 40])
@pytest.mark.parametrize("kind", ["spearman", "average_precision"])
def test_variance_of_a_rank_statistic_is_what_other_items_show(kind, groups, monkeypatch):
    """Of many draws of items the mean of the variances is the variance of the differences; groups: also of 2 or 3."""
    monkeypatch.setattr("analysis.statistics.items.GROUPS", groups)
    found, score = [], stats.spearmanr if kind == "spearman" else lambda x, t: _precision(t, x)
    for seed in range(300):
        values, truth = predictions(100, 1, seed)
        truth = truth if kind == "spearman" else (truth > 2).astype(float)
        of_items = item_variances(kind, values, truth, ONE, TWO)
        found.append((score(values[1, 0], truth)[0] - score(values[0, 0], truth)[0], of_items.variance[0]))
    differences, variances = np.array(found).T
    assert of_items.freedom == min(100, groups) - 1
    assert variances.mean() == pytest.approx(differences.var(), rel=4 * np.sqrt(2 / len(found)))


def _precision(truth, predicted):
    return (average_precision_score(truth, predicted),)
