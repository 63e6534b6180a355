"""Schedules of training and averaged weights: both pages say what the stored scores do."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.analyse import analyse
from analysis.cli import read_arguments
from analysis.statistics.correction import holm
from tests.analysis.pages.markdown import DOCS, TABLES, number, table_rows

SCORES = TABLES / "schedules.csv.gz"
RECIPES = {"the study's": "usual", "constant, averaged": "constant", "warm-up 30": "warm-up"}


@pytest.fixture(scope="module")
def text():
    return (
        (DOCS / "decisions" / "training-recipe.md").read_text(encoding="utf-8").partition("**Two other schedules**")[2]
    )


@pytest.fixture(scope="module")
def runs():
    """The mean over tasks of every run: index (design, seed), a column per recipe."""
    scores = pd.read_csv(SCORES)
    assert scores.groupby(["model", "seed"]).size().tolist() == [7] * 3 * 3 * 10
    scores["design"] = scores["pooler"] + "-" + scores["attn"]
    return scores.pivot_table(index=["design", "seed"], columns="recipe", values="score")


def test_the_table(text, runs):
    head, *rows = table_rows(text)
    assert head[1:] == list(RECIPES)
    spreads = rows[:6]
    for name, *cells in spreads:
        one, _, other = name.rpartition("**: ")[2].partition(" - ")
        of = runs.loc[one] - runs.loc[other] if other else runs.loc[one]
        assert list(map(number, cells)) == pytest.approx(of.std()[list(RECIPES.values())].tolist(), abs=5.1e-5)
    for name, *cells in rows[6:9]:
        means = runs.loc[name.rpartition("**: ")[2]].mean()
        assert list(map(number, cells)) == pytest.approx(means[list(RECIPES.values())].tolist(), abs=5.1e-5)


def test_no_schedule_is_told_to_save_seeds(text, runs):
    words = [f"scores={SCORES}", "factors=[pooler,attn,recipe]", "models=[* usual,* constant,* warm-up]", "items=none"]
    (answer,) = (answer for answer in analyse(read_arguments(words)).answers if answer.name == "recipes")
    table = answer.frames["recipes"].sort_values("p")
    said = re.search(
        r"the smallest p is (\.\d+) \(warm-up 30, (.+?), ratio (\.\d+)\), 1 after Holm over six;"
        r" .+? would be (\.\d+) before",
        text,
    )
    least = table.iloc[0]
    assert len(table) == 6
    assert least["recipe"] == "warm-up"
    assert set(least["pair"].split(" - ")) == set(said[2].split(" - "))
    usual, warm = (runs.loc["multilayer-causal"][of] - runs.loc["multilayer-bi"][of] for of in ("usual", "warm-up"))
    of_normal = stats.pearsonr(usual + warm, usual - warm).pvalue
    assert (float(said[1]), float(said[3])) == pytest.approx((least["p"], least["ratio"]), abs=5.1e-3)
    assert float(said[4]) == pytest.approx(of_normal, abs=5.1e-4)
    assert least["p_adjusted"] == 1
    others = float(re.search(r"the other five have (\.\d+) or more", text)[1])
    assert table["p"].iloc[1] == pytest.approx(others, abs=5.1e-3)
    assert not table["told"].any()


def test_the_means_that_rise(text, runs):
    p = {}
    for design in ("eos-causal", "multilayer-causal", "multilayer-bi"):
        for recipe in ("constant", "warm-up"):
            p[design, recipe] = stats.ttest_rel(runs.loc[design][recipe], runs.loc[design]["usual"]).pvalue
    after = dict(zip(p, holm(pd.Series(p).to_numpy()), strict=True))
    asked = [("multilayer-causal", recipe) for recipe in ("constant", "warm-up")]
    gains = (runs.loc["multilayer-causal"].mean() - runs.loc["multilayer-causal"]["usual"].mean())[
        ["constant", "warm-up"]
    ]
    said = re.search(
        r"\(([+.\d]+) and ([+.\d]+); paired over seeds, p ([.\d]+) and ([.\d]+), uncorrected over six\):"
        r" after Holm ([.\d]+) and ([.\d]+),",
        text,
    )
    wanted = [*gains, *(p[of] for of in asked), *(after[of] for of in asked)]
    assert list(map(float, said.groups())) == pytest.approx(wanted, abs=5.1e-3)
    assert min(after[of] for of in asked) > 0.05


def test_averaged_weights():
    text = (DOCS / "decisions" / "averaging.md").read_text(encoding="utf-8").partition("## Why it is off")[2]
    scores = pd.read_csv(TABLES / "averaging.csv.gz").fillna({"trainer.average": 0.0})  # of the last weights
    scores["design"] = scores["pooler"] + "-" + scores["attn"]
    runs = scores.pivot_table(index=["design", "seed"], columns="trainer.average", values="score")
    words = [f"scores={TABLES / 'averaging.csv.gz'}", "factors=[pooler,attn,trainer.average]", "items=none"]
    of_usual = "models=[* last weights,* last quarter,* last half]"
    answers = {answer.name: answer for answer in analyse(read_arguments([*words, of_usual])).answers}
    table = answers["recipes"].frames["recipes"].set_index(["pair", "recipe"])
    _, *rows = table_rows(text)
    kind, p = "", {}
    for name, *cells in rows:
        kind, design = name.strip("*").split("**: ") if name.startswith("**") else (kind, name)
        one, _, other = design.partition(" - ")
        of = runs.loc[one] - runs.loc[other] if other else runs.loc[one]
        if kind.startswith("spread"):
            assert list(map(number, cells)) == pytest.approx(of.std().tolist(), abs=5.1e-5)
        elif kind == "mean score":
            assert list(map(number, cells)) == pytest.approx(of.mean().tolist(), abs=5.1e-5)
        for level, cell in zip((0.25, 0.5), cells[1:], strict=True):
            said = [float(text) for text in re.findall(r"[+-]?\d*\.\d+", cell)]
            if kind.startswith("ratio"):
                row = table.loc[design, str(level)]
                assert said == pytest.approx([row["ratio"], row["low"], row["high"]], abs=5.1e-3)
            elif kind.startswith("change"):
                test = stats.ttest_rel(of[level], of[0.0])
                half = np.ptp(test.confidence_interval()) / 2
                assert said == pytest.approx([(of[level] - of[0.0]).mean(), half], abs=5.1e-5)
                p[one, level] = test.pvalue
    least = table.sort_values("p").iloc[0]
    assert (
        f"the smallest p is {least['p']:.2f} (last half, multilayer-bi - eos-causal; 1 after".replace("0.", ".") in text
    )
    assert not table["told"].any()
    after = dict(zip(p, holm(np.array(list(p.values()))), strict=True))
    asked = [("multilayer-causal", level) for level in (0.25, 0.5)]
    said = re.search(r"\(p over seeds ([.\d]+) and ([.\d]+); ([.\d]+) and ([.\d]+) after Holm over six\)", text)
    wanted = [*(p[of] for of in asked), *(after[of] for of in asked)]
    assert list(map(float, said.groups())) == pytest.approx(wanted, rel=0.08)
    assert (runs.loc["multilayer-causal"][0.5] < runs.loc["multilayer-causal"][0.0]).all()
    assert min(value for of, value in p.items() if of not in asked) == pytest.approx(0.21, abs=5.1e-3)
