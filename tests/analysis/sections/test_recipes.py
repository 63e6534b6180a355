"""The spread over seeds of differences by recipe: every row against all swaps, and what the table says of it."""

from fractions import Fraction
from itertools import product
from operator import mul

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control, pearsonr

from analysis.report.page import report_files
from analysis.statistics.correction import holm
from analysis.statistics.spreads import paired_ratio

TASKS = [f"t{k}" for k in range(12)]


def drawn(rng, n, spread=1.0, tie=0.5):
    common = rng.normal(size=n)
    return tie * common + rng.normal(size=n), spread * (tie * common + rng.normal(size=n))


@pytest.mark.parametrize("n", [4, 5, 10])
@pytest.mark.parametrize("tie", [0.0, 0.7, 3.0])
def test_the_interval_is_what_the_correlation_of_sum_and_difference_does_not_reject(n, tie):
    rng = np.random.default_rng(n)
    for _ in range(20):
        one, other = drawn(rng, n, 1.7, tie)
        found = paired_ratio(one, other)
        assert found.ratio == pytest.approx(other.std() / one.std())
        for end in (found.low, found.high):
            assert pearsonr(end * one + other, end * one - other).pvalue == pytest.approx(0.05)
        assert paired_ratio(one, other, 0.9).low > found.low
        assert found.p == pytest.approx(swapped(one, other))


def swapped(one, other):
    """Return p over all ways in which the two values of a seed change places, by exact sums of fractions."""
    x, y = (([Fraction(v) - Fraction(float(np.median(of))) for v in of.tolist()]) for of in (one, other))
    squares = [a**2 - b**2 for a, b in zip(x, y, strict=True)]
    sums = [abs(sum(map(mul, signs, squares))) for signs in product((1, -1), repeat=len(squares))]
    return np.mean([of >= abs(sum(squares)) for of in sums])


def test_the_ratio_keeps_its_level_and_its_coverage():
    rng, rounds = np.random.default_rng(0), 2000
    error = 3 * np.sqrt(0.05 * 0.95 / rounds)
    found = [paired_ratio(*drawn(rng, 5, 2.0)) for _ in range(rounds)]
    assert np.mean([of.low <= 2.0 <= of.high for of in found]) == pytest.approx(0.95, abs=error)
    skewed = rng.exponential(size=(rounds, 2, 10)) + rng.exponential(size=(rounds, 1, 10))
    assert np.mean([paired_ratio(*pair).p <= 0.05 for pair in skewed]) <= 0.05 + error
    assert np.mean([pearsonr(a + b, a - b).pvalue <= 0.05 for a, b in skewed]) > 0.05 + error


@pytest.mark.parametrize("one", [np.arange(3.0), np.full(6, 0.5)])
def test_too_few_seeds_and_a_spread_of_nothing_have_no_ratio(one):
    assert np.isnan(list(vars(paired_ratio(one, one**2)).values())).all()


def scores(path, sd, seeds=12):
    """A csv of two poolings and a mean at two rates; at the second `sd` is the spread of `mean` over seeds."""
    rng, rows = np.random.default_rng(5), []
    for pooler, of_pooler in (("eos", 0.01), ("mean", 0.01), ("lastlayer", 0.01)):
        for lr in ("0.001", "0.002"):
            spread = sd if (pooler, lr) == ("mean", "0.002") else of_pooler
            runs = 0.5 + rng.normal(0, 0.02, (12, 1)) + rng.normal(0, spread, seeds) + rng.normal(0, 0.001, (12, seeds))
            rows += [
                (f"{pooler} {lr}", pooler, lr, task, "STS", seed, runs[k, seed])
                for k, task in enumerate(TASKS)
                for seed in range(seeds)
            ]
    columns = ["model", "pooler", "objective.lr", "task", "type", "seed", "score"]
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return path


def answer_of(analyse_words, path, *words):
    result = analyse_words(f"scores={path}", "factors=[pooler,objective.lr]", *words)
    return next((answer for answer in result.answers if answer.name == "recipes"), None)


def test_the_table_of_a_study(tmp_path, analyse_words):
    path = scores(tmp_path / "s.csv", 0.1)
    answer = answer_of(analyse_words, path)
    files = report_files(analyse_words(f"scores={path}", "factors=[pooler,objective.lr]"), [])
    assert r"Pitman's and Morgan's~\cite{pitman1939,morgan1939}" in files["methods.tex"]
    table = answer.frames["recipes"].set_index("pair")
    runs = pd.read_csv(path).groupby(["model", "seed"])["score"].mean().unstack("model")
    p = {}
    for pair, row in table.iterrows():
        second, first = pair.split(" - ")
        usual, other = (runs[f"{second} {lr}"] - runs[f"{first} {lr}"] for lr in ("0.001", "0.002"))
        assert (row["sd_usual"], row["sd"]) == pytest.approx((usual.std(), other.std()))
        p[pair] = swapped(usual.to_numpy(), other.to_numpy())
    assert list(p) == ["mean - eos", "lastlayer - eos", "lastlayer - mean"]
    assert table["p"].to_dict() == pytest.approx(p)
    np.testing.assert_allclose(table["p_adjusted"], holm(np.array(list(p.values()))))
    assert table["told"].to_dict() == {"mean - eos": True, "lastlayer - eos": False, "lastlayer - mean": True}
    said = "That another objective.lr changes how far a difference varies with the seed is told of mean - eos at 0.002"
    assert answer.notes[0].startswith(said)
    assert [row[-1].mark for row in answer.grids[0].rows] == ["*", "", "*"]
    turned = answer_of(analyse_words, path, "against=eos 0.002").frames["recipes"].set_index("pair")
    assert turned["ratio"].to_dict() == pytest.approx((1 / table["ratio"]).to_dict())
    assert set(turned["recipe"]) == {"0.001"}
    other = answer_of(analyse_words, path, "correction=bh").frames["recipes"]
    np.testing.assert_allclose(other["p_adjusted"], false_discovery_control(list(p.values())))
    resampled = answer_of(analyse_words, path, "correction=westfall_young").frames["recipes"]
    np.testing.assert_allclose(resampled["p_adjusted"], table["p_adjusted"])


def test_a_recipe_that_changes_nothing_is_not_told(tmp_path, analyse_words):
    answer = answer_of(analyse_words, scores(tmp_path / "s.csv", 0.01))
    assert not answer.frames["recipes"]["told"].any()
    assert answer.notes[0].endswith("is not told of any pair.")


def test_three_seeds_and_one_recipe_have_no_table(tmp_path, analyse_words):
    assert answer_of(analyse_words, scores(tmp_path / "three.csv", 0.1, seeds=3)) is None
    assert answer_of(analyse_words, scores(tmp_path / "one.csv", 0.1), "models=[* 0.001]") is None
