"""Warnings of the calibration: when they are given, what they say, and that the constants are what is measured."""

import numpy as np
import pandas as pd
import pytest

from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.question import Material
from analysis.questions.validity import answer, heavy_tailed
from analysis.settings import Settings
from analysis.statistics.power import Shifted
from analysis.statistics.validity import (
    COVERAGE,
    SKEWED_HODGES_LEHMANN,
    SKEWED_SIGNED_RANK,
    SKEWED_T,
    at,
    coverage_note,
    related_note,
    skew_note,
)
from analysis.statistics.variance import intraclass
from benchmarks.calibrate.calibration import Plan, coverage, false_positives
from benchmarks.calibrate.null_worlds import read_spreads

ASKED = ("validity",)


def test_constants_are_what_the_benchmark_measures():
    """The exponential world needs no file of scores, so the table can be measured again here."""
    plan, spreads = Plan(2000, 1000), read_spreads(None)
    for n in (8, 20):
        rates = false_positives(plan, spreads, "skewed, mean 0", n)
        assert rates["signed-rank, wilcox"] == pytest.approx(SKEWED_SIGNED_RANK[n], abs=0.03)
    held = coverage(plan, spreads, "skewed, mean 0", 20)
    assert held["Hodges-Lehmann"] == pytest.approx(SKEWED_HODGES_LEHMANN[20], abs=0.045)
    assert held["bootstrap, percentile"] == pytest.approx(0.906, abs=0.04)
    assert held["t"] == pytest.approx(SKEWED_T[20], abs=0.04)


def test_the_rate_of_a_number_of_tasks_lies_between_those_measured():
    table = COVERAGE["bootstrap-t"]
    assert at(table, 41) == table[41]
    assert at(table, 3) == table[8]
    assert at(table, 500) == table[60]
    rate = at(SKEWED_SIGNED_RANK, 40)
    assert rate == pytest.approx(SKEWED_SIGNED_RANK[20] + 20 / 21 * (SKEWED_SIGNED_RANK[41] - SKEWED_SIGNED_RANK[20]))


def test_no_number_of_tasks_is_quoted_a_kinder_rate_than_both_its_neighbours():
    for table in (SKEWED_SIGNED_RANK, SKEWED_HODGES_LEHMANN):
        sizes = sorted(table)
        for n in range(sizes[0], sizes[-1] + 1):
            below, above = max(s for s in sizes if s <= n), min(s for s in sizes if s >= n)
            rate = at(table, n)
            assert min(table[below], table[above]) <= rate <= max(table[below], table[above])
            assert (
                abs(rate - table[min(sizes, key=lambda s: abs(s - n))]) <= abs(table[above] - table[below]) / 2 + 1e-12
            )


def test_forty_tasks_are_not_told_the_rate_of_twenty():
    (note,) = skew_note(np.array([2.0]), 40)
    assert "rejected 19 % instead of 5 %" in note
    assert "n = 40, between 20 and 41 as measured" in note
    (more,) = skew_note(np.array([2.0]), 100)
    assert "n = 60, the most measured; with more tasks it moves on" in more
    (related,) = related_note(np.array([0.45]), 40)
    assert "with a correlation of .6 the signed-rank test rejected 23 %" in related


def test_intervals_that_fall_short_are_named():
    (note,) = coverage_note("bootstrap percentile", 8)
    assert note.startswith("The bootstrap percentile interval holds the mean in about 86 % instead of 95 % of samples")
    assert "n = 8" in note
    assert coverage_note("Hodges-Lehmann", 41) == []


def test_heavy_tails_are_seen():
    from scipy.stats import kurtosis

    rng = np.random.default_rng(4)
    light, heavy = rng.normal(size=(15, 41)), rng.standard_t(3, size=(15, 41))
    assert np.median(kurtosis(light, axis=1)) < 1 < np.median(kurtosis(heavy, axis=1))
    assert not heavy_tailed(light)
    assert heavy_tailed(heavy)
    assert not heavy_tailed(np.zeros((3, 8)))


def test_skewed_differences_are_named():
    (note,) = skew_note(np.array([0.2, -2.0, np.nan, 1.5]), 41)
    assert "held the mean in 81 %, Student's t in 93 %" in note
    assert note.startswith("The differences of 2 of 4 pairs are strongly skewed")
    assert "rejected 19 % instead of 5 %, a permutation test of the mean 7 % (at n = 41); the" in note
    assert skew_note(np.array([1.4]), 8) == []  # two standard errors are 1.5 there
    assert len(skew_note(np.array([1.6]), 8)) == 1


def test_related_tasks_are_named():
    (note,) = related_note(np.array([0.3, 0.28, np.nan]), 40)
    assert "intraclass correlation .29 at the median" in note
    assert "rejected 16 % instead of 5 %" in note
    assert related_note(np.array([0.05, -0.2]), 40) == []
    assert related_note(np.array([np.nan]), 40) == []


def test_intraclass_correlation_equals_the_mean_squares_of_statsmodels():
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(2)
    groups = [[0, 3, 4], [1, 2], [5, 6, 7, 8]]
    labels = np.empty(9, dtype=int)
    for k, group in enumerate(groups):
        labels[group] = k
    d = rng.normal(size=(3, 9)) + rng.normal(size=(3, 3))[:, labels]
    found = intraclass(d, groups)
    for row, icc in zip(d, found, strict=True):
        table = anova_lm(ols("y ~ C(g)", pd.DataFrame({"y": row, "g": labels})).fit())
        between, within = table["mean_sq"]
        m = (9 - (9 + 4 + 16) / 9) / 2
        assert icc == pytest.approx((between - within) / (between + (m - 1) * within))
    assert np.isnan(intraclass(d, [list(range(9))])).all()
    assert np.isnan(intraclass(d[:, :3], [[0], [1], [2]])).all()


def test_the_report_warns_of_the_data_at_hand(study, analyse_words):
    rng = np.random.default_rng(0)
    tasks = [f"{kind}{k}" for kind in ("Retrieval", "STS") for k in range(8)]
    even = {task: round(0.5 + 0.002 * (k % 5), 4) for k, task in enumerate(tasks)}
    study.run("eos-causal", even)
    study.run("mean-bi", {t: s + (0.1 if t == "STS3" else 0.001 * rng.normal()) for t, s in even.items()})
    study.run("multilayer-bi", {t: s + (0.05 if t.startswith("STS") else 0.01) for t, s in even.items()})
    notes = " ".join(analyse_words(f"scores={study.root}").notes)
    assert "The differences of 1 of 3 pairs are strongly skewed" in notes
    assert "differences of tasks of one type resemble one another" in notes
    assert Shifted(np.array([0.0, 0.0, 0.0, 0.0, 1.0])).skewness > 2


def test_no_warning_is_given_of_an_interval_that_is_not_there():
    """325 heavy-tailed pairs: more than are resampled. What is warned of must stand in the table of pairs."""
    values = 0.5 + 0.02 * np.random.default_rng(0).standard_t(2.2, size=(41, 26))
    tasks = [f"t{k}" for k in range(41)]
    matrix = pd.DataFrame(values, index=tasks, columns=[f"m{k}" for k in range(26)])
    blocks = {"STS": tasks}
    pairs = compare_pairs(matrix, blocks, Settings(scores=()))
    section = answer(Material(Settings(scores=()), {}, "", blocks, blocks, None, matrix, pairs))
    column = {"bootstrap-t": "boot_low", "t": "mean_low"}
    named = [note.split()[1] for note in section.notes if "interval holds" in note]
    assert all(pairs[column[name]].notna().all() for name in named)
