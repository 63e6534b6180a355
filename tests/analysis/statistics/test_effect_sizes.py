"""Intervals of effect sizes against statsmodels' Wilson and the noncentral t by integration; their coverage."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, norm
from statsmodels.stats.proportion import proportion_confint

from analysis.statistics.effect_sizes import effect_sizes
from analysis.statistics.wilcoxon import signed_rank


def noncentral_t(t, df, shift):
    """P(T <= t): the normal given the standard deviation, over its distribution."""
    return quad(lambda u: norm.cdf(t * np.sqrt(chi2.ppf(u, df) / df) - shift), 0, 1)[0]


@pytest.mark.parametrize("effect", [-1.2, 0.1, 0.8])
def test_ends_of_d_z_leave_half_of_alpha_on_either_side(effect):
    d = np.random.default_rng(0).normal(effect, 1, (3, 9))
    found = effect_sizes(d, signed_rank(d), 0.9)
    assert found["d_z"] == pytest.approx(d.mean(axis=1) / d.std(axis=1, ddof=1))
    for size, low, high in zip(found["d_z"], found["d_z_low"], found["d_z_high"], strict=True):
        assert noncentral_t(3 * size, 8, 3 * low) == pytest.approx(0.95, abs=1e-5)
        assert noncentral_t(3 * size, 8, 3 * high) == pytest.approx(0.05, abs=1e-5)


def test_rank_biserial_has_wilsons_ends_of_three_quarters_of_the_tasks():
    d = np.array([[0.1, 0.2, -0.3, 0.4, 0.5, 0.0, 0.6, 0.7, 0.8], np.arange(1, 10) / 10])
    found = effect_sizes(d, signed_rank(d))
    for k, (share, n) in enumerate(((33 / 36, 8), (1.0, 9))):
        low, high = proportion_confint(share * 0.75 * n, 0.75 * n, method="wilson")
        assert found["rank_biserial_low"][k] == pytest.approx(2 * low - 1)
        assert found["rank_biserial_high"][k] == pytest.approx(2 * high - 1)


@pytest.mark.parametrize("draw", ["normal", "standard_exponential"])
@pytest.mark.parametrize("n", [8, 40])
def test_the_interval_of_rank_biserial_holds_its_expectation(n, draw):
    rng = np.random.default_rng(1)
    d = getattr(rng, draw)(size=(3000, n)) - 0.6
    r = signed_rank(d)
    found = effect_sizes(d, r)
    true = r.rank_biserial.mean()
    assert ((found["rank_biserial_low"] <= true) & (true <= found["rank_biserial_high"])).mean() > 0.935
    if draw == "normal":  # where the interval of d_z is exact
        assert ((found["d_z_low"] <= -0.6) & (found["d_z_high"] >= -0.6)).mean() == pytest.approx(0.95, abs=0.012)


def test_differences_that_hardly_vary_have_ends_and_take_no_time():
    """d_z of 1e6: then t is the noncentrality over the root of chi-square over its degrees of freedom."""
    d = 1 + np.random.default_rng(2).normal(0, 1e-6, (1, 8))
    found = effect_sizes(d, signed_rank(d))
    wanted = found["d_z"] * np.sqrt(chi2.ppf([0.025, 0.975], 7) / 7)
    assert np.concatenate([found["d_z_low"], found["d_z_high"]]) == pytest.approx(wanted, rel=1e-3)


def test_nothing_to_tell_is_nan():
    d = np.array([np.zeros(5), np.full(5, 0.1)])
    found = effect_sizes(d, signed_rank(d))
    assert np.isnan(found["d_z"]).all()
    assert np.isnan(found["d_z_low"]).all()
    assert np.isnan(found["rank_biserial_low"]).tolist() == [True, False]
