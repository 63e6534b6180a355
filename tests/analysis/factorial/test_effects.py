"""F, effect size and p of the factorial effects, each against an independent expression."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from analysis.settings import Settings
from analysis.statistics.contrasts import effect_contrasts, helmert
from analysis.statistics.correction import holm
from analysis.statistics.sign_flip import RANDOM_FLIPS, random_signs, sign_flip
from analysis.tables.crossings import Crossing
from analysis.tables.tested_effects import effect_test, effect_tests, factorial_effects

LEVELS = {"pooler": ["eos", "mean", "lastlayer"], "attn": ["causal", "bi"]}
CELLS = list(product(*LEVELS.values()))
CROSSING = Crossing(LEVELS, {}, ["-".join(cell) for cell in CELLS])


def scores(tasks, seed=0, cells=6):
    """[tasks, cells]: task difficulty, a pooler effect that differs between tasks, and noise."""
    rng = np.random.default_rng(seed)
    slope = rng.normal(0.02, 0.03, (tasks, 1)) * np.arange(cells)
    return rng.normal(0.5, 0.2, (tasks, 1)) + slope + rng.normal(0, 0.02, (tasks, cells))


def settings(**changes):
    return Settings(scores=(), **changes)


def test_contrasts_are_an_orthonormal_basis_and_helmerts():
    np.testing.assert_allclose(helmert(3), np.array([[-1, -1], [1, -1], [0, 2]]) / np.sqrt([2, 6]))
    contrasts = effect_contrasts({"a": 2, "b": 3, "c": 2})
    assert [len(effect) for effect in contrasts] == [1, 1, 1, 2, 2, 2, 3]
    assert [columns.shape[1] for columns in contrasts.values()] == [1, 2, 1, 2, 1, 2, 2]
    basis = np.hstack([np.full((12, 1), 12**-0.5), *contrasts.values()])
    np.testing.assert_allclose(basis.T @ basis, np.eye(12), atol=1e-14)


def test_f_is_that_of_statsmodels():
    from statsmodels.stats.anova import AnovaRM

    values = scores(9)
    long = pd.DataFrame(
        [(task, *cell, values[task, k]) for task in range(9) for k, cell in enumerate(CELLS)],
        columns=["task", "pooler", "attn", "score"],
    )
    theirs = AnovaRM(long, "score", "task", within=["pooler", "attn"]).fit().anova_table
    ours = effect_tests({"STS": values}, CROSSING, 0.05).set_index("effect")
    for name in ("pooler", "attn", "pooler x attn"):
        row = theirs.loc[name.replace(" x ", ":")]
        assert ours.loc[name, "F"] == pytest.approx(row["F Value"], rel=1e-9)
        assert (ours.loc[name, "df"], ours.loc[name, "df_error"]) == (row["Num DF"], row["Den DF"])


def test_partial_eta_squared_from_the_sums_of_squares():
    values = scores(7)
    table = values.reshape(7, 3, 2)
    grand = values.mean()
    pooler = table.mean(axis=(0, 2)) - grand
    effect = 7 * 2 * (pooler**2).sum()
    residual = table.mean(axis=2) - table.mean(axis=(1, 2))[:, None] - pooler
    error = 2 * (residual**2).sum()
    row = effect_tests({"STS": values}, CROSSING, 0.05).iloc[0]
    assert row["partial_eta_squared"] == pytest.approx(effect / (effect + error), rel=1e-12)
    f, df, rest = row["F"], row["df"], row["df_error"]
    assert row["partial_eta_squared"] == pytest.approx(f * df / (f * df + rest), rel=1e-12)


def test_exact_p_is_that_of_literal_enumeration_of_f():
    values = scores(8, seed=3)
    for columns in effect_contrasts({"pooler": 3, "attn": 2}).values():
        vectors = values @ columns

        def f(signs, z=vectors):
            flipped = z * np.array(signs)[:, None]
            mean = flipped.mean(axis=0)
            return (mean**2).sum() / ((flipped - mean) ** 2).sum()

        observed = f([1] * 8)
        p = np.mean([f(signs) >= observed * (1 - 1e-12) for signs in product([1, -1], repeat=8)])
        assert sign_flip(vectors).p == pytest.approx(p, abs=1e-15)
        assert effect_test(vectors)["p"] == pytest.approx(p, abs=1e-15)


def test_random_flips_come_near_the_exact_p_and_repeat():
    vectors = scores(16, seed=5) @ effect_contrasts({"pooler": 3, "attn": 2})["pooler", "attn"]
    exact = sign_flip(vectors)
    least = (vectors.sum(axis=0) ** 2).sum()
    drawn = sum(
        (((signs @ vectors) ** 2).sum(axis=1) >= least * (1 - 1e-12)).sum() for signs in random_signs(16, RANDOM_FLIPS)
    )
    p = (drawn + 1) / (RANDOM_FLIPS + 1)
    assert exact.flips == 2**15
    assert 0.01 < exact.p < 0.99
    assert abs(p - exact.p) < 4 * np.sqrt(exact.p * (1 - exact.p) / RANDOM_FLIPS)
    many = scores(30, seed=5) @ effect_contrasts({"pooler": 3, "attn": 2})["pooler", "attn"]
    assert sign_flip(many) == sign_flip(many)
    assert (sign_flip(many).flips, sign_flip(many).p_min) == (99_999, 1e-5)


def test_holm_is_over_the_effects_on_all_tasks_and_over_those_of_all_types():
    tests = effect_tests({"A": scores(4), "B": scores(6), "All": scores(8)}, CROSSING, 0.05)
    assert tests["family_size"].tolist() == [6] * 6 + [3] * 3
    for rows in (tests[:6], tests[6:]):
        np.testing.assert_allclose(rows["p_permutation_holm"], holm(rows["p_permutation"].to_numpy()))
    assert tests["p_holm"].isna().all()


def test_identical_designs_have_no_effect():
    values = np.repeat(np.random.default_rng(0).uniform(0.1, 0.9, (8, 1)), 6, axis=1)
    tests = effect_tests({"STS": values}, CROSSING, 0.05)
    assert tests[["p_permutation", "p_min", "p_permutation_holm"]].to_numpy().tolist() == [[1.0] * 3] * 3
    assert tests["F"].tolist() == tests["partial_eta_squared"].tolist() == [0.0] * 3
    assert tests["n_zero"].tolist() == [8] * 3


def test_the_same_effect_on_every_task_is_infinite_f():
    values = np.random.default_rng(0).uniform(0.1, 0.9, (8, 1)) + np.array([0, 0, 0.1, 0.1, 0.3, 0.3])
    pooler, attn, both = effect_tests({"STS": values}, CROSSING, 0.05).to_dict("records")
    assert (pooler["F"], pooler["partial_eta_squared"], pooler["p_permutation"]) == (np.inf, 1.0, 2.0**-7)
    assert (attn["F"], attn["p_permutation"], both["F"], both["p_permutation"]) == (0.0, 1.0, 0.0, 1.0)


def test_one_task_has_no_f():
    matrix = pd.DataFrame(scores(5), index=list("abcde"), columns=CROSSING.designs)
    factors = pd.DataFrame(CELLS, index=CROSSING.designs, columns=list(LEVELS))
    found, _ = factorial_effects(matrix, factors, {"Summarization": ["a"], "STS": list("bcde")}, settings())
    one = found.tests[found.tests["type"] == "Summarization"]
    assert one[["F", "partial_eta_squared"]].isna().all(axis=None)
    assert one["p_permutation"].tolist() == [1.0] * 3
