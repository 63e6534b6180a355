"""With alpha=.01 every interval is one of 99 %: its head, its caption and its ends."""

import json
from itertools import product

import numpy as np
import pytest

from analysis.grids.formats import interval
from analysis.questions.compared_pairs import pairs_among
from tests.analysis.three_seeds import run_seeds

DESIGNS = ("eos-causal", "eos-bi", "lastlayer-causal", "lastlayer-bi")


@pytest.fixture(scope="module")
def words(new_study, spread_scores):
    """Four designs, two seeds, sixteen tasks of eight sources."""
    study, rng = new_study(), np.random.default_rng(0)
    for k, (design, seed) in enumerate(product(DESIGNS, (0, 1))):
        scores = {task: value + rng.normal(0, 0.02) for task, value in spread_scores(0.3 + 0.005 * (k // 2)).items()}
        study.run(design, scores, seed=seed)
    path = study.root / "sources.json"
    path.write_text(json.dumps({f"{kind}{k}": f"source {k}" for kind in ("Retrieval", "STS") for k in range(8)}))
    return [f"scores={study.root}", f"cluster={path}"]


@pytest.fixture(scope="module")
def usual_and_strict(words, analyse_words):
    """The results at alpha .05 and .01."""
    return [analyse_words(*words, f"alpha={alpha}") for alpha in (0.05, 0.01)]


def named(result):
    """Section -> (heads and captions of its grids, frames)."""
    return {
        section.name: (" ".join(t for grid in section.grids for t in (*grid.header, grid.caption)), section.frames)
        for section in result.answers
    }


def test_intervals_are_of_the_level_that_alpha_leaves(usual_and_strict):
    usual, strict = map(named, usual_and_strict)
    for name in ("seeds", "clusters", "strengths"):
        assert ("95 %" in usual[name][0], "99 %" in usual[name][0]) == (True, False), name
        assert ("95 %" in strict[name][0], "99 %" in strict[name][0]) == (False, True), name
    columns = {
        "seeds": ("over_tasks", "by_model", "by_pooled"),
        "clusters": ("tasks", "clusters"),
    }
    for name, own in columns.items():
        before, after = (found[name][1][name] for found in (usual, strict))
        for column in own:
            assert (after[f"low_{column}"] < before[f"low_{column}"]).all()
            assert (after[f"high_{column}"] > before[f"high_{column}"]).all()
    before, after = (found["strengths"][1]["strengths"] for found in (usual, strict))
    assert (after["rank_high"] - after["rank_low"]).sum() > (before["rank_high"] - before["rank_low"]).sum()


def test_so_are_the_marginal_means_and_the_verdict(usual_and_strict):
    usual, strict = usual_and_strict
    before, after = (
        next(a for a in result.answers if a.name == "effects").frames["marginal_means"] for result in (usual, strict)
    )
    assert (after["high"] - after["low"] > before["high"] - before["low"]).all()
    for result, level in ((usual, "95 %"), (strict, "99 %")):
        pairs = result.material.pairs
        best, second = result.material.matrix.mean().nlargest(2).index
        (pair,) = pairs_among(pairs[pairs["type"] == "All"], [best, second]).to_dict("records")
        ends = sorted([pair["hl_low"], pair["hl_high"]])
        either = [interval(*ends), interval(-ends[1], -ends[0])]
        assert any(f"Hodges-Lehmann, {level} interval {text}" in result.verdict for text in either)
        assert "No claim about designs: that takes 3 seeds" in result.verdict
    assert "99 %" not in usual.verdict
    assert "95 %" not in strict.verdict


def test_a_claim_is_of_the_level_too(new_study, spread_scores, analyse_words):
    """A pair between the levels: told at .05 and not at .01, and never of the first seed alone."""
    study, rng = new_study(), np.random.default_rng(5)
    for k, design in enumerate(DESIGNS[:2]):
        lift = {task: value + 0.01 * k + rng.normal(0, 0.01) for task, value in spread_scores(0.3).items()}
        run_seeds(study, design, lift, 3)
    for alpha, said, star in (("0.05", "is told of the designs", "*"), ("0.01", "is not told of the designs", "")):
        result = analyse_words(f"scores={study.root}", f"alpha={alpha}")
        row = result.material.pairs.iloc[-1]
        assert 0.01 < row["p_adjusted"] <= 0.05
        assert row["told"] == (star == "*")
        assert f"The difference {said}: over tasks p = " in result.verdict
        (grid,) = [grid for grid in result.grids(main=True) if grid.name == "pairs"]
        assert grid.rows[0][-1].mark == star
        once = analyse_words(f"scores={study.root}", f"alpha={alpha}", "seeds=[0]")
        assert "No claim about designs: that takes 3 seeds" in once.verdict
        (grid,) = [grid for grid in once.grids(main=True) if grid.name == "pairs"]
        assert {cell.mark for cell in grid.rows[0]} == {""}


def test_below_six_units_there_are_intervals_too(words, analyse_words):
    """Student's interval needs two units; the bootstrap-t needed six."""
    sections = analyse_words(*words, "tasks=[STS0,STS1,STS2,STS3,STS4]").answers
    (seeds,) = [section for section in sections if section.name == "seeds"]
    texts = [cell.text for cell in seeds.grids[0].rows[0]]
    assert all(text.startswith("[") for text in texts[2:5])
