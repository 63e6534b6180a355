"""Equivalence tests against scipy, enumeration and their own level, corrected over a family."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.equivalence import equivalence
from tests.analysis.three_seeds import write_long

ASKED = ("equivalence",)
MARGIN = 0.005


@pytest.mark.parametrize("n", [5, 8, 20, 41])
def test_both_tests_are_scipys_of_the_shifted_differences(n):
    d = np.random.default_rng(n).normal(0.001, 0.01, size=(6, n))
    found = equivalence(d, MARGIN)
    for k, row in enumerate(d):
        above = stats.wilcoxon(row + MARGIN, alternative="greater", method="exact").pvalue
        below = stats.wilcoxon(row - MARGIN, alternative="less", method="exact").pvalue
        assert (found.p_above[k], found.p_below[k]) == pytest.approx((above, below), rel=1e-9)
        assert found.p[k] == max(found.p_above[k], found.p_below[k])


@pytest.mark.parametrize("n", [1, 4, 9])
def test_with_ties_and_values_on_the_margin_it_is_enumeration(n):
    rng = np.random.default_rng(n)
    d = rng.integers(-3, 4, size=(8, n)) / 400  # .0025 apart, so some are the margin itself
    found = equivalence(d, MARGIN)
    signs = np.array(list(product([0, 1], repeat=n)))
    for row, p in zip(d, found.p_above, strict=True):
        moved = np.round(row + MARGIN, 12)
        ranks = np.where(moved == 0, 0, stats.rankdata(np.abs(moved)) - (moved == 0).sum())
        assert p == pytest.approx((signs @ ranks <= ranks[moved < 0].sum() + 1e-9).mean(), abs=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_both_pass_where_the_interval_lies_within_the_margin(alpha):
    d = np.random.default_rng(1).normal(0, 1, size=(400, 15)) * np.geomspace(0.002, 0.02, 400)[:, None]
    found = equivalence(d, MARGIN, alpha)
    within = (found.low > -MARGIN) & (found.high < MARGIN)
    assert 50 < within.sum() < 350
    np.testing.assert_array_equal(found.p <= alpha, within)


@pytest.mark.parametrize("n", [8, 20, 60])
@pytest.mark.parametrize("side", [1, -1])
def test_at_the_margin_at_most_alpha_are_called_equivalent(n, side):
    rng = np.random.default_rng(n)
    for noise in (rng.normal(size=(4000, n)), rng.standard_t(3, size=(4000, n)), rng.laplace(size=(4000, n))):
        share = (equivalence(0.001 * noise + side * MARGIN, MARGIN).p <= 0.05).mean()
        assert 0.02 < share < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)


def test_no_task_number_and_no_margin_allows_less_than_the_smallest_p():
    for n in (1, 3, 8):
        found = equivalence(np.zeros((1, n)), MARGIN)
        assert found.p[0] == found.p_min[0] == 2.0**-n
    assert equivalence(np.zeros((1, 8)), 0.0).p_min[0] == equivalence(np.zeros((1, 8)), 0.0).p[0] == 1.0


@pytest.mark.parametrize("sd", [0.008, 0.004])
def test_claims_are_corrected_over_the_family(tmp_path, analyse_words, sd):
    values = 0.5 + np.random.default_rng(5).normal(0, sd, (3, 24))
    types = dict.fromkeys((f"t{task}" for task in range(24)), "STS")
    path, found = tmp_path / "x.csv", {}
    write_long(path, values, ["m0", "m1", "m2"], types)
    for correction in ("holm", "none"):  # one run each: p is there, and nothing is claimed
        result = analyse_words(f"scores={path}", f"correction={correction}", "missing=fail")
        (section,) = [section for section in result.answers if section.name == "equivalence"]
        assert not section.frames["equivalence"]["within_margin"].any()
        found[correction] = section.frames["equivalence"]
    assert (found["holm"]["p_holm"] <= 0.05).any() == (sd == 0.004), "what three seeds below turn into a claim"
    once = found["holm"]
    write_long(path, values, ["m0", "m1", "m2"], types, 3)
    for correction in ("holm", "none"):
        result = analyse_words(f"scores={path}", f"correction={correction}", "missing=fail")
        (section,) = [section for section in result.answers if section.name == "equivalence"]
        found[correction] = section.frames["equivalence"]
    holm = found["holm"]
    order = np.argsort(holm["p"].to_numpy())
    steps = np.maximum.accumulate(holm["p"].to_numpy()[order] * [3, 2, 1])
    np.testing.assert_allclose(holm["p_holm"].to_numpy()[order], np.minimum(1, steps))
    np.testing.assert_allclose(holm["p"], once["p"], rtol=1e-9)
    over_seeds = holm["p_seeds"].to_numpy()
    steps = np.maximum.accumulate(over_seeds[np.argsort(over_seeds)] * [3, 2, 1])
    np.testing.assert_allclose(holm["p_seeds_adjusted"].to_numpy()[np.argsort(over_seeds)], np.minimum(1, steps))
    both = (holm["p_holm"] <= 0.05) & (holm["p_seeds_adjusted"] <= 0.05)
    assert (holm["within_margin"] == both).all()
    assert both.any() == (sd == 0.004)
    plain = found["none"]
    assert (plain["within_margin"] == ((plain["p"] <= 0.05) & (plain["p_seeds"] <= 0.05))).all()
