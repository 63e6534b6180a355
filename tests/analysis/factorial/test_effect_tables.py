"""Marginal means, the printed tables, and the way from a results folder to the files."""

import csv

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.grids.formats import fraction
from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.crossings import Crossing
from analysis.questions.effects import effect_grids, effects_for_file, effects_grid
from analysis.questions.tested_effects import (
    Factorial,
    effect_tests,
    factorial_effects,
    marginal_means,
)
from analysis.settings import Settings
from analysis.write import document, write_files
from tests.analysis.three_seeds import by_seed, long_frame

ASKED = ("means", "effects")
TWO = Crossing({"pooler": ["eos", "mean"], "attn": ["causal", "bi"]}, {"lora.r": "8"}, ["a", "b", "c", "d"])
VALUES = np.array([[0.1, 0.2, 0.3, 0.6], [0.2, 0.2, 0.4, 0.5], [0.1, 0.3, 0.2, 0.6]])
SETTINGS = Settings(scores=())


def two_by_two(values=VALUES, seeds=1):
    scores, cube = {"STS": values}, by_seed(values.T, seeds)
    return Factorial(TWO, effect_tests(scores, TWO, 0.05, {"STS": cube}), marginal_means(scores, TWO))


def test_marginal_means_and_their_interval():
    table = marginal_means({"STS": VALUES}, TWO).set_index(["factor", "level"])
    assert table.loc[("pooler", "eos"), "mean"] == pytest.approx(1.1 / 6)
    half = ((VALUES[:, 2] + VALUES[:, 3]) - (VALUES[:, 0] + VALUES[:, 1])) / 4  # level minus grand mean, a task each
    row = table.loc[("pooler", "mean")]
    assert row["difference"] == pytest.approx(half.mean())
    assert (row["low"], row["high"]) == pytest.approx(stats.ttest_1samp(half, 0).confidence_interval(0.95))
    both = table.loc[("pooler x attn", "(mean - eos) at bi - at causal")]
    difference = (VALUES[:, 3] - VALUES[:, 1]) - (VALUES[:, 2] - VALUES[:, 0])
    assert both["difference"] == pytest.approx(difference.mean())
    assert (both["low"], both["high"]) == pytest.approx(stats.ttest_1samp(difference, 0).confidence_interval(0.95))
    assert np.isnan(both["mean"])


@pytest.mark.parametrize("seeds", [1, 3])
def test_marks_follow_the_corrected_p(seeds):
    rng = np.random.default_rng(0)
    values = rng.uniform(0.3, 0.5, (9, 1)) + np.array([0, 0, 0.1, 0.1]) + rng.normal(0, 0.01, (9, 4))
    factorial = two_by_two(values, seeds)
    grid = effects_grid(factorial, SETTINGS)
    cells, tests = {row[0].text: row[2] for row in grid.rows}, factorial.tests.set_index("effect")
    assert cells["pooler"].below[-1] == "tasks .0117" == f"tasks {fraction(tests.loc['pooler', 'p_permutation_holm'])}"
    assert cells["pooler"].mark == ("*" if seeds == 3 else "\N{DAGGER}")
    assert (tests["n_seeds"] == seeds).all()
    for effect, cell in cells.items():
        assert (f"p {fraction(tests.loc[effect, 'p_holm'])}" in cell.below) == (seeds == 3)


def test_p_of_an_effect_of_two_designs_is_that_of_their_pair():
    cube = by_seed(np.random.default_rng(3).uniform(0.3, 0.5, (9, 4)).T, 4, sd=0.05)[:2]
    crossing, tasks = Crossing({"pooler": ["eos", "mean"]}, {}, ["a", "b"]), [f"t{k}" for k in range(9)]
    effect = effect_tests({"STS": cube.mean(axis=2).T}, crossing, 0.05, {"STS": cube}).iloc[0]
    matrix = pd.DataFrame(cube.mean(axis=2).T, index=tasks, columns=["a", "b"])
    pair = compare_pairs(matrix, {"STS": tasks}, SETTINGS, frame=long_frame(cube, ["a", "b"], tasks)).iloc[0]
    assert effect["p"] == pytest.approx(pair["p"], rel=1e-9)


def test_both_crossings_have_tables_with_titles_of_their_own():
    heads = [("lastlayer", t, a) for t in ("last", "all") for a in ("causal", "bi")]
    heads += [("multilayer", t, a) for t in ("last", "all") for a in ("causal", "bi")]
    cells = [("eos", "", "causal"), ("eos", "", "bi"), *heads]
    factors = pd.DataFrame(cells, index=["-".join(cell) for cell in cells], columns=["pooler", "pooler.tokens", "attn"])
    values = np.random.default_rng(0).uniform(size=(5, 10))
    matrix = pd.DataFrame(values, columns=factors.index)
    effects, _ = factorial_effects(matrix, factors, {"STS": list(range(5))}, SETTINGS)
    grids = effect_grids(effects, SETTINGS)
    names = [grid.name for grid in grids]
    assert names == ["effects", "marginals", "effects-wide", "marginals-wide"]
    assert len({grid.title for grid in grids}) == len(grids)
    tests, means = effects_for_file(effects).values()
    assert tests["crossing"].value_counts().to_dict() == {
        "pooler (2) x pooler.tokens (2) x attn (2)": 7,
        "reading (5) x attn (2)": 3,
    }
    wide = means[(means["crossing"] == "reading (5) x attn (2)") & (means["level"] == "lastlayer/all")].iloc[0]
    assert wide["mean"] == pytest.approx(matrix[["lastlayer-all-causal", "lastlayer-all-bi"]].to_numpy().mean())


@pytest.fixture
def crossed(study, spread_scores):
    rng = np.random.default_rng(1)
    for k, design in enumerate(
        ("eos-causal", "lastlayer-causal", "lastlayer-bi", "multilayer-causal", "multilayer-bi")
    ):
        noise = {task: float(score + rng.normal(0, 0.004)) for task, score in spread_scores(0.4 + 0.02 * k).items()}
        study.run(design, noise)
    return study


def test_from_results_to_files(crossed, analyse_words, tmp_path):
    result = analyse_words(f"scores={crossed.root}")
    assert any("left out: eos-causal." in note for note in result.notes)
    files = {path.name: path for path in write_files(result, tmp_path / "out")}
    rows = list(csv.DictReader(files["effects.csv"].open()))
    assert [row["effect"] for row in rows] == ["pooler", "attn", "pooler x attn"] * 3
    assert {row["type"] for row in rows} == {"Retrieval", "STS", "All"}
    assert rows[0]["crossing"] == "pooler (2) x attn (2)"
    assert float(rows[0]["p_permutation_holm"]) >= float(rows[0]["p_permutation"])
    means = pd.read_csv(files["marginal_means.csv"])
    own = means[(means["type"] == "All") & (means["level"] == "bi")].iloc[0]
    assert own["mean"] == pytest.approx(result.material.matrix[["lastlayer-bi", "multilayer-bi"]].to_numpy().mean())
    text = document(result)
    assert "## Main effects and interactions" in text
    assert "## Marginal means" in text
    assert r"\label{tab:marginals}" in files["table.tex"].read_text()
