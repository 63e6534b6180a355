"""Critical differences, cliques and post hoc tests against brute force, tables, Demsar's example, scikit-posthocs."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.statistics.ranks import (
    against_control,
    cliques,
    critical_difference,
    letters,
    nemenyi_distance,
    nemenyi_p,
    task_ranks,
)
from tests.analysis.statistics.test_friedman import DEMSAR


def brute_force(averages, cd):
    """All sets of positions without two that differ by cd or more, kept where no larger such set holds them."""
    k = len(averages)
    sets = [frozenset(s) for size in range(1, k + 1) for s in combinations(range(k), size)]
    close = [s for s in sets if all(abs(averages[a] - averages[b]) < cd for a, b in combinations(s, 2))]
    return {s for s in close if not any(s < other for other in close)}


@pytest.mark.parametrize("seed", range(30))
def test_cliques_are_the_maximal_sets(seed):
    rng = np.random.default_rng(seed)
    averages = np.round(rng.uniform(1, 7, 7), seed % 2)  # every other time whole numbers, so that some are equal
    for cd in (0.5, 1.0, 2.2, 9.0):
        found = cliques(averages, cd)
        assert {frozenset(clique) for clique in found} == brute_force(averages, cd)
        assert [min(averages[list(c)]) for c in found] == sorted(min(averages[list(c)]) for c in found)
        shared = [set(a) & set(b) for a, b in combinations(letters(found, 7), 2)]
        near = [abs(a - b) < cd for a, b in combinations(averages, 2)]
        assert [bool(common) for common in shared] == near


def test_cliques_written_out():
    assert cliques(np.array([3.0, 1.0, 1.5, 2.2]), 1.0) == [(1, 2), (2, 3), (3, 0)]
    assert letters([(1, 2), (2, 3), (3, 0)], 4) == ["c", "a", "ab", "bc"]
    assert cliques(np.array([2.0, 2.0, 2.0]), 0.1) == [(0, 1, 2)]
    assert cliques(np.array([1.0, 2.0, 3.0]), 1.0) == [(0,), (1,), (2,)]  # a difference of cd is one
    assert letters([(k,) for k in range(27)], 27) == [""] * 27


def test_critical_values_of_demsars_table():
    """Demsar 2006, table 5 (a): q for the two-tailed Nemenyi test."""
    q = {0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]}
    q[0.10] = [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]
    for alpha, row in q.items():
        for k, value in zip(range(2, 11), row, strict=True):
            assert nemenyi_distance(k, 10, alpha) == pytest.approx(value * np.sqrt(k * (k + 1) / 60), abs=1e-3)


def test_demsars_example():
    """Section 3.2.2: the CD at .10 is 1.12; p of C4.5 and each other .016, .019, .607, of which Holm rejects two."""
    matrix = pd.DataFrame(DEMSAR, columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"])
    found = critical_difference(matrix, alpha=0.10)
    assert found.cd == pytest.approx(1.12, abs=0.005)
    assert list(found.ranks) == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
    assert found.cliques == [["C4.5+m+cf", "C4.5+m", "C4.5+cf"], ["C4.5+cf", "C4.5"]]
    tests = against_control(task_ranks(DEMSAR).mean(axis=0), 14, 0)
    assert tests["p"][1:] == pytest.approx([0.019, 0.607, 0.016], abs=2e-3)
    assert (tests["p_holm"][1:] <= 0.05).tolist() == [True, False, True]
    assert tests["z"][1:] == pytest.approx([-2.342, -0.512, -2.416], abs=2e-3)
    assert np.isnan([tests[name][0] for name in ("z", "p", "p_holm")]).all()


def test_holm_is_that_of_statsmodels():
    averages = np.array([2.0, 4.5, 3.1, 2.9, 5.5])
    found = against_control(averages, 12, 3)
    others = [0, 1, 2, 4]
    assert found["p_holm"][others] == pytest.approx(multipletests(found["p"][others], method="holm")[1])


@pytest.mark.parametrize("ties", [False, True])
def test_nemenyi_is_that_of_scikit_posthocs(ties):
    posthocs = pytest.importorskip("scikit_posthocs")
    values = np.round(np.random.default_rng(3).normal(size=(11, 6)) + 0.5 * np.arange(6), 0 if ties else 6)
    averages = task_ranks(values).mean(axis=0)
    theirs = posthocs.posthoc_nemenyi_friedman(values).to_numpy()
    ours = nemenyi_p((averages[:, None] - averages).ravel(), 6, 11).reshape(6, 6)
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_the_critical_difference_is_where_p_is_alpha():
    for k, n in ((3, 5), (10, 41), (60, 20)):
        cd = nemenyi_distance(k, n, 0.05)
        steps = np.arange(1, 2 * n * (k - 1) + 1) / (2 * n)
        assert ((nemenyi_p(steps, k, n) < 0.05) == (steps > cd)).all()


def test_two_designs_are_the_normal_test_of_their_ranks():
    assert nemenyi_p(np.array([0.4]), 2, 25)[0] == pytest.approx(2 * stats.norm.sf(0.4 / np.sqrt(6 / 150)))


def test_equal_designs_share_a_bar():
    matrix = pd.DataFrame(np.tile(np.linspace(0.1, 0.9, 8)[:, None], (1, 3)), columns=["a", "b", "c"])
    found = critical_difference(matrix)
    assert found.ranks == {"a": 2.0, "b": 2.0, "c": 2.0}
    assert found.cliques == [["a", "b", "c"]]
