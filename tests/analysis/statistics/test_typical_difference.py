"""Sign, size, interval and star of a pair are of one statistic, by every rule of zeros; a mean against it is named."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from analysis.questions.compared_pairs import compare_pairs
from analysis.settings import Settings

RULES = ("wilcox", "pratt", "zsplit")


def pairs_of(scores, **changes):
    """The pairs table of scores [designs, tasks], all tasks of one type."""
    tasks = [f"t{k}" for k in range(scores.shape[1])]
    matrix = pd.DataFrame(scores.T, index=tasks, columns=[f"d{k}" for k in range(len(scores))])
    return compare_pairs(matrix, {"STS": tasks}, Settings(scores=(), **changes))


def left_out(rows):
    return (rows["hl_low"] > 0) | (rows["hl_high"] < 0)


@pytest.mark.parametrize("zeros", RULES)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("n", [3, 5, 6, 8, 13, 41])
def test_the_interval_leaves_out_0_exactly_where_the_test_passes(n, alpha, zeros):
    """Coarse scores: most rows have ties, many have zeros. Nothing is rounded away: p is compared as it is."""
    rng = np.random.default_rng(n)
    for steps in (2, 5, 40):
        scores = np.round(rng.normal(0, 1, (9, n)) + np.linspace(0, 1.2, 9)[:, None], 1) // (10 / steps) / 100
        rows = pairs_of(scores, zeros=zeros, alpha=alpha)
        assert (left_out(rows) == (rows["p"] <= alpha * (1 + 1e-9))).all()
        assert (rows["hl_low"] <= rows["hl_high"]).all()
        sides = np.sign(rows["w_plus"] - rows["w_minus"])
        assert (sides * np.sign(rows["hodges_lehmann"]) >= 0).all()
        assert (sides[left_out(rows)] == np.where(rows["hl_low"] > 0, 1, -1)[left_out(rows)]).all()


@hypothesis_settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(-3, 6), min_size=1, max_size=14), st.sampled_from(RULES), st.sampled_from([0.05, 0.1, 0.3]))
def test_so_it_does_whatever_the_differences(values, zeros, alpha):
    row = pairs_of(np.array([np.zeros(len(values)), np.array(values) / 8]), zeros=zeros, alpha=alpha).iloc[0]
    assert (row["hl_low"] > 0 or row["hl_high"] < 0) == (row["p"] <= alpha * (1 + 1e-9))


@pytest.mark.parametrize("zeros", RULES)
def test_so_it_does_for_every_pair_of_published_models(published, zeros):
    rows = pairs_of(published.frame().dropna().to_numpy() / 100, zeros=zeros)
    assert len(rows) == published.whole * (published.whole - 1) / 2
    assert (rows["n_zero"] > 0).any()
    passed = rows["p"] <= 0.05
    assert (left_out(rows) == passed).all()
    assert (np.sign(rows["hodges_lehmann"]) == np.sign(rows["w_plus"] - rows["w_minus"]))[passed].all()


@pytest.mark.parametrize("zeros", RULES)
def test_the_estimate_drops_the_zeros_where_the_test_does(zeros):
    d = np.array([0.0, 0.0, 0.0, 0.01, 0.02, 0.02, 0.03, -0.01, 0.05, 0.06])
    kept = d[d != 0] if zeros == "wilcox" else d
    averages = [(kept[i] + kept[j]) / 2 for i in range(len(kept)) for j in range(i, len(kept))]
    row = pairs_of(np.array([np.zeros(10), d]), zeros=zeros).iloc[0]
    assert row["hodges_lehmann"] == pytest.approx(np.median(averages), abs=1e-15)


def test_where_nothing_differs_nothing_is_said():
    row = pairs_of(np.full((2, 9), 0.5)).iloc[0]
    assert (row["hodges_lehmann"], row["hl_low"], row["hl_high"]) == (0.0, -np.inf, np.inf)


def fewest(d):
    """By trying every subset: the size of the smallest without which the mean of the others is above 0."""
    for size in range(len(d) + 1):
        for out in combinations(range(len(d)), size):
            rest = np.delete(d, out)
            if len(rest) and rest.sum() > 1e-12:
                return size
    return None


def test_the_tasks_that_turn_the_mean_are_the_fewest():
    from analysis.statistics.intervals import tipping_tasks

    rng = np.random.default_rng(0)
    for _ in range(60):
        d = np.round(rng.normal(-0.2, 1, 7), 2)
        if d.sum() >= 0 or d.max() <= 0:
            continue
        tasks = tipping_tasks(d, 1.0)
        assert len(tasks) == fewest(d)
        assert np.delete(d, tasks).sum() > 0
        assert tipping_tasks(-d, -1.0) == tasks
    assert tipping_tasks(np.array([0.1, 0.2, -0.1]), 1.0) == []


@pytest.fixture
def torn(tmp_path):
    """`steady` is a little ahead on 21 tasks, `lucky` far ahead on three, and has the higher mean."""
    rng = np.random.default_rng(1)
    base, lift = rng.uniform(0.4, 0.5, 24), rng.uniform(0.01, 0.03, 24)
    lucky = base.copy()
    steady = base + lift
    for task, by in ((4, 0.25), (9, 0.2), (17, 0.3)):
        lucky[task] = steady[task] + by
    lines = ["model,task,type,score"]
    for name, scores in (("steady", steady), ("lucky", lucky), ("low", base - 0.2)):
        lines += [f"{name},STS{k:02},STS,{score:.4f}" for k, score in enumerate(scores)]
    path = tmp_path / "torn.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("layout", ["grid", "paper"])
def test_a_star_stands_on_the_difference_of_the_test_and_the_mean_beside_it(torn, analyse_words, layout):
    result = analyse_words(f"scores={torn}", f"layout={layout}")
    row = result.material.pairs.iloc[0]  # lucky - steady
    assert row["difference"] > 0 > row["hodges_lehmann"]
    assert row["significant"]
    (grid,) = [grid for grid in result.grids(main=True) if grid.name == "pairs"]
    place = grid.header.index("Mean")
    mean, tested = grid.rows[0][place], grid.rows[0][place + 1]
    assert (mean.text[0], mean.mark, mean.below) == ("+", "", ())
    assert tested.text == f"{row['hodges_lehmann']:+.4f}".replace("0.", ".", 1)
    assert tested.mark.startswith("*")
    assert grid.caption.startswith("Hodges-Lehmann difference in score")


def test_the_verdict_speaks_with_its_test_and_names_the_tasks_that_make_the_mean(torn, analyse_words):
    result = analyse_words(f"scores={torn}")
    line = result.verdict
    assert line.startswith("Verdict: lucky has the highest mean over the 24 STS tasks (")
    ahead = re.search(r"On the typical task steady is (\.\d{4}) ahead of lucky \(Hodges-Lehmann, 95 % interval ", line)
    assert float(ahead[1]) == pytest.approx(-result.material.pairs.iloc[0]["hodges_lehmann"], abs=5e-5)
    assert "The difference is significant at .05 after Holm over 3 pairs" in line
    assert "The means say the opposite because of " in line
    assert "STS17 (-.3000)" in line
    assert result.material.pairs.iloc[0]["mean_tipped_by"].split("; ")[0] == "STS17"
    (note,) = [note for note in result.notes if "point opposite ways" in note]
    assert "STS, lucky - steady: mean +" in note
    assert "in 1 of 3 rows, 1 of them with a star" in note
