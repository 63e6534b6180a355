"""Marginal means, the printed tables, and the way from a results folder to the files."""

import csv

import numpy as np
import pandas as pd
import pytest

from analysis.tables.crossings import Crossing
from analysis.tables.effects import effects_table
from analysis.tables.tested_effects import Factorial, effect_tests, marginal_means
from analysis.write import write_files
from tests.analysis.three_seeds import by_seed

ASKED = ("means", "effects")
TWO = Crossing({"pooler": ["eos", "mean"], "attn": ["causal", "bi"]}, {"lora.r": "8"}, ["a", "b", "c", "d"])
VALUES = np.array([[0.1, 0.2, 0.3, 0.6], [0.2, 0.2, 0.4, 0.5], [0.1, 0.3, 0.2, 0.6]])


def two_by_two(values=VALUES, seeds=1):
    scores, cube = {"STS": values}, by_seed(values.T, seeds)
    return Factorial(TWO, effect_tests(scores, TWO, 0.05, {"STS": cube}), marginal_means(scores, TWO))


def test_marginal_means():
    table = marginal_means({"STS": VALUES}, TWO).set_index(["factor", "level"])
    assert table.loc[("pooler", "eos"), "mean"] == pytest.approx(1.1 / 6)
    half = ((VALUES[:, 2] + VALUES[:, 3]) - (VALUES[:, 0] + VALUES[:, 1])) / 4  # level minus grand mean, a task each
    assert table.loc[("pooler", "mean"), "difference"] == pytest.approx(half.mean())


@pytest.mark.parametrize("seeds", [1, 3])
def test_marks_follow_the_corrected_p(seeds):
    rng = np.random.default_rng(0)
    values = rng.uniform(0.3, 0.5, (9, 1)) + np.array([0, 0, 0.1, 0.1]) + rng.normal(0, 0.01, (9, 4))
    factorial = two_by_two(values, seeds)
    shown, tests = effects_table(factorial, "STS").frame, factorial.tests
    signs = {"over tasks and seeds": "*", "over tasks only": "\N{DAGGER}", "no": ""}
    assert shown["Effect"].tolist() == (tests["effect"] + tests["significant"].map(signs)).tolist()
    assert shown["Effect"][0] == ("pooler*" if seeds == 3 else "pooler\N{DAGGER}")
    np.testing.assert_array_equal(shown["Holm p (tasks)"], tests["p_permutation_holm"])
    np.testing.assert_array_equal(shown["Holm p"], tests["p_holm"])


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
    (section,) = [one for one in result.sections if one.name == "effects"]
    assert "left out: eos-causal." in section.notes[0]
    files = {path.name: path for path in write_files(result, tmp_path / "out")}
    rows = list(csv.DictReader(files["effects.csv"].open()))
    assert [row["effect"] for row in rows] == ["pooler", "attn", "pooler x attn"] * 3
    assert {row["type"] for row in rows} == {"Retrieval", "STS", "All"}
    assert float(rows[0]["p_permutation_holm"]) >= float(rows[0]["p_permutation"])
    means = pd.read_csv(files["marginal_means.csv"])
    own = means[(means["type"] == "All") & (means["level"] == "bi")].iloc[0]
    assert own["mean"] == pytest.approx(result.compared.matrix[["lastlayer-bi", "multilayer-bi"]].to_numpy().mean())
    assert r"\label{tab:marginal-means}" in files["table.tex"].read_text()
