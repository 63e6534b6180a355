"""The mean over types: its test against all sign patterns, its interval against scipy's Welch, and the words."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind

from analysis.statistics.stratified import stratified
from cli.errors import UserError

ASKED = ("mean_over_types",)
STRATA = [np.array([0, 2, 4, 5]), np.array([1, 3, 6, 7, 8])]


def test_equals_all_sign_patterns_with_and_without_weights():
    d = np.random.default_rng(0).normal(0.3, 1, (3, 9))
    for weights in ([1, 1], [3, 1]):
        found = stratified(d, STRATA, np.array(weights))
        for row, difference, p in zip(d, found.difference, found.flips.p, strict=True):
            means = [
                np.average([(row * signs)[places].mean() for places in STRATA], weights=weights)
                for signs in product([1, -1], repeat=9)
            ]
            assert difference == pytest.approx(means[0])
            assert p == pytest.approx(np.mean(np.abs(means) >= abs(means[0]) - 1e-12))


def test_interval_of_two_types_is_welchs():
    """The mean of a type and of the other one turned round is half the difference of two means."""
    d = np.random.default_rng(1).normal(size=9)
    wanted = ttest_ind(d[STRATA[0]], d[STRATA[1]], equal_var=False).confidence_interval(0.9)
    turned = d.copy()
    turned[STRATA[1]] *= -1
    found = stratified(turned[None], STRATA, np.ones(2), 0.9)
    assert (found.low[0], found.high[0]) == pytest.approx((wanted.low / 2, wanted.high / 2))


def test_a_type_of_one_task_has_a_test_and_no_interval():
    found = stratified(np.ones((1, 5)), [np.arange(4), np.array([4])], np.ones(2))
    assert (found.difference[0], found.flips.p[0]) == (1, 2 / 2**5)
    assert np.isnan(found.low[0])


@pytest.fixture
def scores(tmp_path):
    rng, rows = np.random.default_rng(2), []
    for kind, count in (("STS", 4), ("Retrieval", 12)):
        for k in range(count):
            base = rng.uniform(0.3, 0.5)
            rows += [
                ("a", f"{kind}{k}", kind, base),
                ("b", f"{kind}{k}", kind, base + (0.1 if kind == "STS" else -0.02)),
            ]
    path = tmp_path / "s.csv"
    pd.DataFrame(rows, columns=["model", "task", "type", "score"]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(("words", "mean"), [((), 0.04), (("type_weights={Retrieval: 3}",), 0.01)])
def test_types_count_as_weighed(scores, analyse_words, words, mean):
    (answer,) = (a for a in analyse_words(f"scores={scores}", *words).answers if a.name == "mean_over_types")
    assert answer.frames["mean_over_types"]["difference"].tolist() == pytest.approx([mean])
    assert ("weights Retrieval 3, STS 1" in answer.grids[0].caption) == bool(words)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("{Retreival: 2}", "no type Retreival. .*Retrieval"),
        ("{STS: 0}", "type_weights.STS=0"),
        ("3", "types and numbers"),
    ],
)
def test_a_wrong_weight_is_refused(scores, analyse_words, weights, message):
    with pytest.raises(UserError, match=message):
        analyse_words(f"scores={scores}", f"type_weights={weights}")
