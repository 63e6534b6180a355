"""Sign, size, interval and star of a pair are of one statistic, by every rule of zeros; a mean against it is named."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from analysis.grids.formats import fraction
from analysis.questions.compared_pairs import compare_pairs
from analysis.settings import Settings
from tests.analysis.three_seeds import by_seed, long_frame, write_long

ASKED = ("pairs",)
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
def torn_by(tmp_path):
    """Return a function that writes so many seeds: `steady` is a little ahead on 21 tasks, `lucky` far ahead on three,
    and has the higher mean."""
    rng = np.random.default_rng(1)
    base, lift = rng.uniform(0.4, 0.5, 24), rng.uniform(0.01, 0.03, 24)
    lucky = base.copy()
    steady = base + lift
    for task, by in ((4, 0.25), (9, 0.2), (17, 0.3)):
        lucky[task] = steady[task] + by
    types = {f"STS{k:02}": "STS" for k in range(24)}
    scores = np.round([steady, lucky, base - 0.2], 4)
    return lambda seeds: write_long(tmp_path / f"{seeds}.csv", scores, ["steady", "lucky", "low"], types, seeds)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("layout", ["grid", "paper"])
def test_a_star_stands_on_the_difference_of_the_test_and_the_mean_beside_it(torn_by, analyse_words, layout, seeds):
    """All three pairs pass over tasks; where the mean has the other sign, over seeds too, the star is withheld."""
    result = analyse_words(f"scores={torn_by(seeds)}", f"layout={layout}")
    rows = result.material.pairs  # lucky - steady, low - steady, low - lucky
    assert rows["difference"].iloc[0] > 0 > rows["hodges_lehmann"].iloc[0]
    assert rows["significant"].all()
    (grid,) = [grid for grid in result.grids(main=True) if grid.name == "pairs"]
    place, marks = grid.header.index("Mean"), []
    for row, cells in zip(rows.to_dict("records"), grid.rows, strict=True):
        mean, tested = cells[place], cells[place + 1]
        assert (mean.text[0], mean.mark, mean.below) == ("+" if row["difference"] > 0 else "-", "", ())
        assert tested.text == f"{row['hodges_lehmann']:+.4f}".replace("0.", ".", 1)
        marks.append(tested.mark)
    own = {"grid": ["(*)", "*", "*"], "paper": ["†", "***", "***"]}
    assert marks == (own[layout] if seeds == 3 else [""] * 3)
    assert grid.caption.startswith("Hodges-Lehmann difference in score")


@pytest.mark.parametrize("gain", [0.0, 0.05])
def test_told_takes_one_sign_of_both_tests(gain):
    """Of two differences that both tests pass, the mean of one has the sign against which ranks speak."""
    lift = np.array([*[-0.01 - 0.0001 * k for k in range(20)], 0.9, 0.9, 0.91, 0.92]) + gain
    lift = lift if gain else np.tile(lift, 4)
    scores = np.array([np.zeros(len(lift)), lift])
    tasks = [f"t{k}" for k in range(len(lift))]
    matrix = pd.DataFrame(scores.T, index=tasks, columns=["d0", "d1"])
    rows = {}
    for seeds in (1, 3):
        frame = long_frame(by_seed(scores, seeds), ["d0", "d1"], tasks)
        (rows[seeds],) = compare_pairs(matrix, {"STS": tasks}, Settings(scores=()), "", frame).to_dict("records")
    assert rows[3]["mean_seeds"] == pytest.approx(lift.mean())
    assert rows[1]["p"] == rows[3]["p"] <= 0.05
    assert rows[3]["p_seeds_adjusted"] <= 0.05
    assert (rows[3]["ahead"] > 0) == (gain > 0)
    assert rows[1]["significant"]
    assert rows[3]["significant"]
    assert not rows[1]["told"]
    assert rows[3]["told"] == (gain > 0)


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_verdict_speaks_with_its_test_and_names_the_tasks_that_make_the_mean(torn_by, analyse_words, seeds):
    result = analyse_words(f"scores={torn_by(seeds)}")
    line = result.verdict
    assert line.startswith("Verdict: lucky has the highest mean over the 24 STS tasks (")
    ahead = re.search(r"On the typical task steady is (\.\d{4}) ahead of lucky \(Hodges-Lehmann, 95 % interval ", line)
    assert float(ahead[1]) == pytest.approx(-result.material.pairs.iloc[0]["hodges_lehmann"], abs=5e-5)
    p = result.material.pairs.iloc[0]["p_adjusted"]
    assert p <= 0.05
    said = {
        1: f"The difference between these runs: p = {fraction(p)} after Holm over 3 pairs",
        3: f"The difference is not told of these models: over tasks p = {fraction(p)} after Holm over 3 pairs",
    }
    assert said[seeds] in line
    assert ("No claim about designs: that takes 3 seeds" in line) == (seeds == 1)
    assert "signific" not in line
    assert "The means say the opposite because of " in line
    assert "STS17 (-.3000)" in line
    assert result.material.pairs.iloc[0]["mean_tipped_by"].split("; ")[0] == "STS17"
    (note,) = [note for note in result.notes if "point opposite ways" in note]
    assert "STS, lucky - steady: mean +" in note
    assert "in 1 of 3 rows; sign and interval are the test's" in note


def test_tasks_without_a_difference_are_no_typical_task(tmp_path, analyse_words):
    """Ten of twelve tasks are equal: the estimate is of the other two, under Pratt's rule of all."""
    scores = np.tile(np.linspace(0.3, 0.6, 12), (2, 1))
    scores[1, :2] += 0.01
    path = write_long(tmp_path / "t.csv", scores, "ab", {f"t{k}": "STS" for k in range(12)})
    verdict = analyse_words(f"scores={path}").verdict
    assert "On the typical task of the 2 on which they differ b is .0100 ahead of a (" in verdict
    assert "On the typical task neither a nor b is ahead (" in analyse_words(f"scores={path}", "zeros=pratt").verdict
