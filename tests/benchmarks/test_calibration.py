"""The vectorised tests and intervals of the calibration against scipy; the worlds' nulls; a quick run."""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.correction import holm
from benchmarks.calibrate import calibration, effect_family, seed_family
from benchmarks.calibrate.null_intervals import (
    INTERVALS,
    bca,
    bootstrap_t,
    covers,
    hodges_lehmann,
    percentile,
)
from benchmarks.calibrate.null_tests import (
    TESTS,
    block_means,
    friedman,
    holm_on_ranks,
    nemenyi,
    pairwise,
    permutation,
    sign_test,
    t_test,
)
from benchmarks.calibrate.null_worlds import BLOCK, SD, WORLDS, five_designs, read_spreads
from cli.errors import guard

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [5, 9, 20])
def test_tests_equal_scipy(n):
    d = np.round(RNG.normal(0.01, 0.03, size=(20, n)), 3)
    d[0, :3] = 0
    d[1] = 0
    t, sign = t_test(d), sign_test(d)
    for k, row in enumerate(d):
        plus, minus = int((row > 0).sum()), int((row < 0).sum())
        assert sign[k] == pytest.approx(stats.binomtest(plus, plus + minus).pvalue if plus + minus else 1.0)
        if k != 1:
            assert t[k] == pytest.approx(stats.ttest_1samp(row, 0).pvalue)
    assert t[1] == 1
    p = permutation(d)
    for k, row in enumerate(d[:10]):
        theirs = stats.permutation_test(
            (row, np.zeros(n)), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=9999, rng=1
        ).pvalue
        assert p[k] == pytest.approx(theirs, abs=1e-12 if n < 12 else 0.045)  # four standard errors of 1,999 flips


def test_signed_rank_tests_are_the_shipped_ones_and_differ_by_zeros():
    d = np.array([[0.0, 0.0, 0.01, 0.02, -0.03, 0.04, 0.05, 0.06, 0.07]])
    theirs = stats.permutation_test(
        (d[0],), _w_plus, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert TESTS["signed-rank, pratt"](d)[0] == pytest.approx(theirs.pvalue)
    assert TESTS["signed-rank, wilcox"](d)[0] != TESTS["signed-rank, pratt"](d)[0]


def _w_plus(values):
    ranks = stats.rankdata(np.abs(values))
    return ranks[values > 0].sum() - ranks[values < 0].sum()


def test_intervals_equal_scipy():
    d = RNG.exponential(size=(4, 15))
    for k, row in enumerate(d):
        for method, interval in (("percentile", percentile), ("BCa", bca)):
            theirs = stats.bootstrap((row,), np.mean, n_resamples=20000, method=method, rng=2).confidence_interval
            low, high = (ends[k] for ends in interval(d))
            assert low == pytest.approx(theirs.low, abs=0.1 * row.std())
            assert high == pytest.approx(theirs.high, abs=0.1 * row.std())
        theirs = stats.ttest_1samp(row, 0).confidence_interval(0.95)
        assert [ends[k] for ends in INTERVALS["t"](d)] == pytest.approx([theirs.low, theirs.high])


@pytest.mark.parametrize("n", [6, 9, 14])
def test_hodges_lehmann_holds_what_the_signed_rank_test_does_not_reject(n):
    d = RNG.normal(0.3, 1, size=(5, n))
    low, high = hodges_lehmann(d)
    for k, row in enumerate(d):
        for inside, value in ((True, low[k] + 1e-6), (True, high[k] - 1e-6), (False, low[k] - 1e-6)):
            assert (stats.wilcoxon(row - value, method="exact").pvalue > 0.05) == inside
        assert stats.wilcoxon(row - high[k] - 1e-6, method="exact").pvalue <= 0.05
    assert np.isinf(hodges_lehmann(d[:, :5])[0]).all()


def test_bootstrap_t_is_scipys_with_a_studentised_statistic(monkeypatch):
    monkeypatch.setattr("benchmarks.calibrate.null_intervals.RESAMPLES", 39_999)
    d = np.random.default_rng(0).exponential(size=(3, 20))
    low, high = bootstrap_t(d)
    for k, row in enumerate(d):
        mean, error = row.mean(), row.std(ddof=1) / np.sqrt(20)

        def studentised(x, axis, mean=mean):
            return (x.mean(axis=axis) - mean) / (x.std(axis=axis, ddof=1) / np.sqrt(x.shape[axis]))

        drawn = stats.bootstrap((row,), studentised, n_resamples=39_999, method="percentile", rng=1, axis=-1)
        t = drawn.confidence_interval
        np.testing.assert_allclose((low[k], high[k]), (mean - t.high * error, mean - t.low * error), atol=0.12)


def test_constant_differences_have_a_point_for_an_interval():
    d = np.full((2, 8), 0.01)
    for interval in INTERVALS.values():
        assert covers(interval(d), 0.01).all()
        assert not covers(interval(d), 0.0).any()


def test_friedman_and_what_follows_equal_scipy():
    scores = np.round(RNG.normal(size=(6, 10, 5)), 1)
    chi, iman = friedman(scores)
    for k, one in enumerate(scores):
        statistic, p = stats.friedmanchisquare(*one.T)
        assert chi[k] == pytest.approx(p)
        assert iman[k] == pytest.approx(stats.f.sf(9 * statistic / (10 * 4 - statistic), 4, 36))
    apart = np.arange(5)[None, None, :] + RNG.normal(0, 0.1, size=(3, 10, 5))
    assert nemenyi(apart).all()
    assert holm_on_ranks(apart).all()
    same = np.tile(np.array([[1, 2, 3, 4, 5.0], [5, 4, 3, 2, 1]]), (5, 1))[None]  # all mean ranks are 3
    assert not nemenyi(same).any()
    assert not holm_on_ranks(same).any()


def test_families_are_corrected_and_only_equal_pairs_count():
    scores = RNG.normal(size=(30, 9, 5))
    expected = []
    for one in scores:
        pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
        p = np.array([stats.ttest_rel(one[:, b], one[:, a]).pvalue for a, b in pairs])
        expected.append(bool((holm(p) <= 0.05).any()))
    assert pairwise(scores, t_test).tolist() == expected
    scores[:, :, -1] += 10
    assert pairwise(scores, t_test).all()
    assert pairwise(scores, t_test, control=True).all()
    assert pairwise(scores, t_test, better=1).mean() < 0.3


def test_worlds_have_the_null_they_name():
    spreads, rng = read_spreads(None), np.random.default_rng(1)
    assert spreads.pairs.shape == (10, 40)
    for name, world in WORLDS.items():
        d = world(rng, spreads, 3000, 8)
        error = d.mean(axis=1).std() / np.sqrt(3000)
        if "median 0" in name:
            assert (d > 0).mean() == pytest.approx(0.5, abs=0.03)
        else:
            assert abs(d.mean()) < 4 * error, name
        if name.startswith("related"):
            rho = np.corrcoef(d[:, 0], d[:, BLOCK - 1])[0, 1]
            assert rho == pytest.approx(float(name.split()[-1]), abs=0.08)
            assert abs(np.corrcoef(d[:, 0], d[:, BLOCK])[0, 1]) < 0.08
    assert (WORLDS["a quarter zeros"](rng, spreads, 2000, 8) == 0).mean() == pytest.approx(0.25, abs=0.02)
    for kind in ("real", "symmetric", "exchangeable"):
        scores = five_designs(rng, spreads, 3000, 8, kind)
        assert np.abs(scores.mean(axis=(0, 1))).max() < 0.05 * SD


def test_block_means():
    d = np.arange(12.0).reshape(2, 6)
    np.testing.assert_allclose(block_means(d), [[1.5, 4.5], [7.5, 10.5]])


@pytest.mark.slow
def test_the_command_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["calibration", "--quick", f"figure={tmp_path / 'power'}"])
    calibration.main()
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("### ")]
    assert titles == [
        "### False positives at 5 %",
        "### Any false positive among five designs",
        "### Coverage of 95 % intervals",
        "### Called equivalent within .005: at the margin",
        "### Called equivalent within .005: half the margin",
        "### Called equivalent within .005: no difference",
        "### Power at 5 %",
    ]
    assert (tmp_path / "power.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "power.png").stat().st_size > 5000


def test_words_of_the_command_are_checked(monkeypatch, capsys):
    for word, message in (("none.csv", "none.csv is not a file"), ("only=intervalls", "no table 'intervalls'")):
        monkeypatch.setattr("sys.argv", ["calibration", "--quick", word])
        with pytest.raises(SystemExit) as left:
            guard(calibration.main)
        assert left.value.code == 2
        assert message in capsys.readouterr().err


def test_the_stricter_p_of_seeds_is_students_where_seeds_alone_vary_and_never_below_the_pairs_own():
    """With a part of the tasks that is next to nothing: the test of S run means. Else the tail is at least as heavy."""
    rng = np.random.default_rng(0)
    of_seed, noise = rng.normal(0.3, 1, (5, 1, 4)), rng.normal(0, 1e-4, (5, 30, 1))
    of_seed = np.concatenate([np.zeros((1, 1, 4)), of_seed])
    cube = np.zeros((6, 30, 4)) + of_seed + np.concatenate([np.zeros((1, 30, 1)), noise])
    first, second = np.zeros(5, dtype=int), np.arange(1, 6)
    _, p = seed_family.stricter(cube, first, second)
    np.testing.assert_allclose(p, stats.ttest_1samp(of_seed[1:, 0], 0, axis=1).pvalue, atol=1e-3)
    scores = rng.normal(0.5, 0.02, (7, 40, 1)) + rng.normal(0, 0.004, (7, 1, 10)) + rng.normal(0, 0.01, (7, 40, 10))
    first, second = np.triu_indices(7, k=1)
    for seeds in (3, 10):
        equal = seed_family.drawn(scores, "own", seeds, rng) + 0.01 * np.arange(7)[:, None, None]
        own, program, stricter = (rule(equal, first, second)[1] for rule in seed_family.RULES.values())
        assert (stricter >= own * (1 - 1e-6)).mean() > 0.9
        assert (program >= own).all()
        assert (program > own).any()


def test_worlds_of_seeds_have_no_difference_and_the_spreads_of_the_runs():
    rng = np.random.default_rng(1)
    sd = np.array([0.002, 0.02, 0.004])[:, None, None]
    scores = 0.5 + sd * rng.normal(size=(3, 1, 400)) + rng.normal(0, 0.01, (3, 30, 400))
    scores += rng.normal(0, 0.02, (3, 30, 1))
    own, alike, again, stray, loud, skewed = (
        seed_family.drawn(scores, world, 2000, rng).mean(axis=1) for world in seed_family.WORLDS
    )
    np.testing.assert_allclose(own.std(axis=1), np.sqrt(sd.ravel() ** 2 + 0.01**2 / 30), rtol=0.1)
    np.testing.assert_allclose(again.std(axis=1), own.std(axis=1), rtol=0.15)
    np.testing.assert_allclose(alike.std(axis=1), alike.std(axis=1).mean(), rtol=0.1)
    np.testing.assert_allclose(stray.std(axis=1) / alike.std(axis=1), [1, 1, 4], rtol=0.1)
    for of_runs, skewness in ((loud, [0, 0, 0]), (skewed, [2, -2, 2])):
        np.testing.assert_allclose(of_runs.std(axis=1), 0.5 * 0.02, rtol=0.2)  # 90 tasks say .02 within a sixth
        np.testing.assert_allclose(stats.skew(of_runs, axis=1), skewness, atol=0.6)


def test_effects_are_told_less_often_with_the_seeds_of_all_and_as_surely_where_they_are_large():
    rng, ahead = np.random.default_rng(2), np.tile(np.repeat([0, 1], 3), 2)[:, None, None]
    scores = rng.normal(0.5, 0.02, (7, 20, 1)) + rng.normal(0, 0.003, (7, 1, 10)) + rng.normal(0, 0.01, (7, 20, 10))
    for world in seed_family.WORLDS:
        equal = effect_family.twelve(scores, world, 3, rng)
        assert equal.shape == (12, 20, 3)
        over_tasks, own, program = effect_family.p_of_effects(equal)
        assert (program >= own).all()
        assert (program > own).any()
    over_tasks, own, program = effect_family.p_of_effects(equal + 0.1 * ahead)
    of_attention = list(effect_family.CONTRASTS).index(("attn",))
    assert effect_family.told(over_tasks, program)[of_attention]
