"""Westfall and Young's adjusted p against closed testing over all sign patterns, each p by scipy."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from analysis.questions.compared_pairs import compare_pairs
from analysis.settings import Settings
from analysis.statistics import westfall_young as module
from analysis.statistics.correction import holm
from analysis.statistics.westfall_young import smallest, westfall_young
from analysis.statistics.wilcoxon import signed_rank, signed_ranks


def differences(seed, n, designs=3, effect=0.0):
    scores = np.random.default_rng(seed).normal(size=(designs, n))
    scores[0] += effect
    first, second = np.triu_indices(designs, 1)
    return scores[second] - scores[first]


@pytest.mark.parametrize("effect", [0.0, 2.0])
def test_equals_closed_testing_of_every_set_of_pairs(effect):
    """A set's p is the share of sign patterns whose least p is at most the least seen; a pair has the largest of the
    sets that hold it."""
    d = differences(1, 7, effect=effect)
    flipped = np.array([[wilcoxon(row * signs).pvalue for row in d] for signs in product([1, -1], repeat=7)])
    wanted = np.zeros(3)
    for sets in (s for size in (1, 2, 3) for s in combinations(range(3), size)):
        least = flipped[:, sets].min(axis=1)
        wanted[list(sets)] = np.maximum(wanted[list(sets)], (least <= least[0] + 1e-12).mean())
    assert westfall_young(signed_rank(d).p, signed_ranks(d)) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("zeros", ["wilcox", "pratt", "zsplit"])
def test_one_pair_has_its_own_p_with_ties_and_zeros(zeros):
    d = np.random.default_rng(2).integers(-2, 5, (1, 11)) / 10
    p = signed_rank(d, zeros).p
    assert westfall_young(p, signed_ranks(d, zeros)) == pytest.approx(p, abs=1e-12)


def test_random_flips_agree_with_all(monkeypatch):
    d = differences(3, 12, 4, effect=0.6)
    p, ranks = signed_rank(d).p, signed_ranks(d)
    exact = westfall_young(p, ranks)
    monkeypatch.setattr(module, "sign_patterns", lambda n, draws: (module_patterns(n, draws), draws, False))
    assert westfall_young(p, ranks) == pytest.approx(exact, abs=4 * np.sqrt(0.25 / module.DRAWS))


def module_patterns(n, draws):
    from analysis.statistics.sign_flip import random_signs

    return random_signs(n, draws)


def test_eight_tasks_can_show_what_holm_cannot():
    """Five designs in the same order on eight tasks: all ten pairs flip alike, so each keeps its p of 2 / 2^8."""
    rng = np.random.default_rng(4)
    scores = pd.DataFrame(np.arange(5) + rng.uniform(0, 0.4, (8, 5)), columns=list("abcde"), index=list("12345678"))
    found = {
        name: compare_pairs(scores, {"STS": list(scores.index)}, Settings(scores=(), correction=name))
        for name in ("holm", "westfall_young")
    }
    assert found["holm"]["p_adjusted"].tolist() == pytest.approx([0.078125] * 10)
    assert set(found["holm"]["reachable"]) == {"uncorrected"}
    assert found["westfall_young"]["p_adjusted"].tolist() == pytest.approx([2 / 2**8] * 10)
    assert found["westfall_young"]["significant"].all()
    assert set(found["westfall_young"]["reachable"]) == {"yes"}


def test_nothing_goes_below_the_floor_or_p_and_all_types_may_be_one_family():
    rng = np.random.default_rng(5)
    tasks = [f"t{k}" for k in range(12)]
    scores = pd.DataFrame(rng.normal(size=(12, 3)), columns=list("abc"), index=tasks)
    blocks = {"STS": tasks[:5], "Retrieval": tasks[5:], "All": tasks}
    table = compare_pairs(scores, blocks, Settings(scores=(), correction="westfall_young", family="table"))
    assert (table["p_adjusted"] >= table["p"] - 1e-12).all()
    assert (table["p_adjusted"] >= table["p_min_adjusted"] - 1e-12).all()
    assert (table["p_adjusted"] <= holm(table["p"].to_numpy()) + 1e-12).all()
    assert set(table["family_size"]) == {9}


def test_the_floor_of_random_flips_is_their_own():
    d = differences(6, 40)
    assert smallest(signed_rank(d).p_min, signed_ranks(d)) == pytest.approx([1 / 10_000] * 3)


def test_pairs_that_are_equal_on_all_tasks_of_a_type_have_p_1():
    rng = np.random.default_rng(7)
    tasks = [f"t{k}" for k in range(14)]
    scores = pd.DataFrame(rng.normal(size=(14, 3)), columns=list("abc"), index=tasks)
    scores.iloc[:6] = scores.iloc[:6, :1].to_numpy()
    blocks = {"STS": tasks[:6], "Retrieval": tasks[6:], "All": tasks}
    table = compare_pairs(scores, blocks, Settings(scores=(), correction="westfall_young")).set_index("type")
    assert table.loc["STS", "p_adjusted"].tolist() == [1, 1, 1]
    alone = compare_pairs(scores.iloc[6:], {"Retrieval": tasks[6:]}, Settings(scores=(), correction="westfall_young"))
    assert table.loc["Retrieval", "p_adjusted"].tolist() == alone["p_adjusted"].tolist()
