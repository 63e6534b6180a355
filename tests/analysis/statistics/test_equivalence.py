"""Equivalence tests against scipy, enumeration and their own level; the posterior of the mean; the section."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.questions.equivalence import STEP
from analysis.statistics.equivalence import equivalence, mean_posterior
from analysis.statistics.intervals import student_interval
from cli.errors import UserError
from tests.analysis.three_seeds import write_long
from tests.analysis.two_designs import write_pairs

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


def test_without_a_difference_power_grows_to_one():
    rng = np.random.default_rng(3)
    shares = [(equivalence(rng.normal(0, 0.02, (400, n)), MARGIN).p <= 0.05).mean() for n in (20, 60, 120, 240, 600)]
    assert shares == sorted(shares)
    assert shares[0] < 0.1
    assert shares[-1] > 0.99


def test_no_task_number_and_no_margin_allows_less_than_the_smallest_p():
    for n in (1, 3, 8):
        found = equivalence(np.zeros((1, n)), MARGIN)
        assert found.p[0] == found.p_min[0] == 2.0**-n
    assert equivalence(np.zeros((1, 8)), 0.0).p_min[0] == equivalence(np.zeros((1, 8)), 0.0).p[0] == 1.0


def test_the_posterior_is_students_and_agrees_with_the_interval():
    d = np.random.default_rng(4).normal(0.002, 0.01, (5, 12))
    found = mean_posterior(d, MARGIN)
    for k, row in enumerate(d):
        t = stats.t(11, row.mean(), stats.sem(row))
        wanted = [t.cdf(-MARGIN), t.cdf(MARGIN) - t.cdf(-MARGIN), t.sf(MARGIN)]
        assert [found["worse"][k], found["equivalent"][k], found["better"][k]] == pytest.approx(wanted)
    high = student_interval(d)[1]
    beyond = [mean_posterior(row[None], edge)["better"][0] for row, edge in zip(d, high, strict=True)]
    assert beyond == pytest.approx([0.025] * 5)


def test_the_posterior_turns_round_and_has_edges():
    d = np.random.default_rng(2).normal(0.002, 0.01, (4, 15))
    found, turned = mean_posterior(d, 0.004), mean_posterior(-d, 0.004)
    assert found["worse"] == pytest.approx(turned["better"])
    assert found["worse"] + found["equivalent"] + found["better"] == pytest.approx(np.ones(4))
    assert 0.35 - 0.30 != 0.05  # in floating point it is more; in the table it is .05, and within the region
    edge = mean_posterior(np.full((1, 6), 0.35 - 0.30), 0.05)
    assert (edge["worse"][0], edge["equivalent"][0], edge["better"][0]) == (0, 1, 0)
    assert mean_posterior(np.zeros((1, 5)), 0.0)["equivalent"][0] == 1
    assert np.isnan(mean_posterior(np.ones((1, 1)), 0.1)["better"]).all()


def of_one_run(tmp_path, analyse_words, n, shift, **how):
    """The result and the table of the same designs trained once: the tests over tasks are there, and no claim is."""
    for name, seeds in (("wide.csv", 0), ("one.csv", 1)):
        result = analyse_words(f"scores={write_pairs(tmp_path / name, n, shift, seeds=seeds, **how)}")
        (section,) = [section for section in result.answers if section.name == "equivalence"]
        table = section.frames["equivalence"]
        assert table["outcome"].tolist() == ["not told"]
        assert table["within_margin"].tolist() == [False]
        assert table["p_seeds"].isna().all()
        assert [cell.mark for cell in section.grids[0].rows[0]] == [""] * 8
        assert "nan" not in " ".join(part for cell in section.grids[0].rows[0] for part in (cell.text, *cell.below))
        assert "not told 1 (rope= is the margin; " in section.notes[0]
        assert "as nothing is of designs with fewer than 3 seeds" in section.notes[0]
        assert "The pair is" not in result.verdict
        assert "equivalent" not in result.verdict
    return result, table


def test_the_three_outcomes_are_said_with_the_margin(tmp_path, analyse_words):
    wanted = {0.0: "equivalent within .005", 0.006: "told apart", 0.0015: "not told"}
    for shift, outcome in wanted.items():
        n = 60 if outcome == "not told" else 120
        _, alone = of_one_run(tmp_path, analyse_words, n, shift)
        result = analyse_words(f"scores={write_pairs(tmp_path / 'x.csv', n, shift, seeds=3)}")
        (section,) = [section for section in result.answers if section.name == "equivalence"]
        assert section.frames["equivalence"]["p"].tolist() == alone["p"].tolist()
        assert section.frames["equivalence"]["outcome"].tolist() == [outcome]
        (grid,) = section.grids
        assert grid.rows[0][1].text == outcome
        assert "margin .005 (rope=)" in grid.caption
        assert f"{outcome} 1" in section.notes[0] or outcome == "told apart"
        if outcome == "told apart":
            assert "told apart 1" in section.notes[0]
            assert "The pair is" not in result.verdict
        else:
            assert f"The pair is {outcome}" in result.verdict
            assert "equivalent within .005" in result.verdict


def test_told_apart_by_less_than_the_margin_is_said(tmp_path, analyse_words):
    of_one_run(tmp_path, analyse_words, 60, 0.002, sd=0.003)
    result = analyse_words(f"scores={write_pairs(tmp_path / 'x.csv', 60, 0.002, sd=0.003, seeds=3)}")
    (section,) = [section for section in result.answers if section.name == "equivalence"]
    row = section.frames["equivalence"].iloc[0]
    assert (row["outcome"], row["within_margin"]) == ("told apart", True)
    assert section.grids[0].rows[0][1].below == ("equivalent within .005",)
    assert "The pair is told apart, and yet equivalent within .005" in result.verdict
    assert "told apart 1 (1 of them equivalent within .005 all the same)" in section.notes[0]
    assert "fewer than 3 seeds" not in section.notes[0]


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


def test_so_few_tasks_cannot_show_equivalence(tmp_path, analyse_words):
    of_one_run(tmp_path, analyse_words, 4, 0.0, sd=0.0001)
    result = analyse_words(f"scores={write_pairs(tmp_path / 'x.csv', 4, 0.0, sd=0.0001, seeds=3)}")
    assert "so few tasks cannot show it to be equivalent within .005 either" in result.verdict
    (section,) = [section for section in result.answers if section.name == "equivalence"]
    assert section.grids[0].rows[0][4].below == ("n.a.: p >= .0625",)
    assert {cell.style for cell in section.grids[0].rows[0][5:]} == {""}  # below six tasks nothing is bold


def test_the_margin_is_checked_and_used(tmp_path, analyse_words):
    path = write_pairs(tmp_path / "x.csv", 40, 0.01, sd=0.004, seeds=3)
    of_one_run(tmp_path, analyse_words, 40, 0.01, sd=0.004)
    for margin, within in ((0.005, False), (0.02, True)):
        result = analyse_words(f"scores={path}", f"rope={margin}")
        (section,) = [section for section in result.answers if section.name == "equivalence"]
        table = section.frames["equivalence"]
        assert table["within_margin"].tolist() == [within]
        assert (table["margin"] == margin).all()
    least = section.frames["equivalence"]["smallest_margin"].iloc[0]
    for margin, outcome in ((least, True), (least - STEP, False)):
        again = analyse_words(f"scores={path}", f"rope={margin:.4f}")
        (section,) = [section for section in again.answers if section.name == "equivalence"]
        assert section.frames["equivalence"]["within_margin"].tolist() == [outcome]
        assert section.frames["equivalence"]["smallest_margin"].tolist() == [least]
    with pytest.raises(UserError, match="rope=2 is out of range"):
        analyse_words(f"scores={path}", "rope=2")
