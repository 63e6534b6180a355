"""Intervals over tasks and seeds: against loops, known variances and coverage; the sections they make."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.statistics.seeds import model_intervals, seed_pairs
from analysis.statistics.sign_flip import bootstrap_counts, pair_intervals, percentile_interval
from analysis.statistics.variance import REST, mean_squares
from benchmarks.calibrate.seed_coverage import resampled_means
from tests.analysis.three_seeds import write_long

ASKED = ("pairs", "seeds", "variance")
ONE, TWO = np.array([0]), np.array([1])


def runs(tasks, seeds, sd, rng, mean=0.0):
    """[2 designs, tasks, seeds]: a pair whose difference has the standard deviations sd = (task, seed, rest)."""
    parts = zip(sd, ((tasks, 1), (1, seeds), (tasks, seeds)), strict=True)
    difference = mean + sum(size * rng.normal(size=shape) for size, shape in parts)
    ground = rng.normal(0.5, 0.1, (tasks, seeds))
    return np.stack([ground, ground + difference])


def test_counts_are_resamples():
    counts = np.concatenate(list(bootstrap_counts(5, 4000)))
    assert counts.shape == (4000, 5)
    assert set(counts.sum(axis=1)) == {5.0}
    # each count is binomial(5, 1/5)
    seen = np.bincount(counts.ravel().astype(int), minlength=6) / counts.size
    np.testing.assert_allclose(seen, stats.binom.pmf(np.arange(6), 5, 0.2), atol=0.015)
    np.testing.assert_array_equal(counts, np.concatenate(list(bootstrap_counts(5, 4000))))


def test_resampled_means_are_those_of_literal_resamples():
    one, other = runs(6, 3, (0.1, 0.1, 0.1), np.random.default_rng(0))
    over_tasks, crossed = resampled_means(other - one, draws=50)
    tasks, seeds = next(bootstrap_counts(6, 50)), next(bootstrap_counts(3, 50, 1))
    for b in range(50):
        drawn_tasks = np.repeat(np.arange(6), tasks[b].astype(int))
        drawn_seeds = np.repeat(np.arange(3), seeds[b].astype(int))
        np.testing.assert_allclose(over_tasks[b], (other - one)[drawn_tasks].mean())
        np.testing.assert_allclose(crossed[b], (other - one)[drawn_tasks][:, drawn_seeds].mean())


def test_the_task_interval_is_that_of_the_pairs_table():
    scores = runs(20, 2, (0.1, 0.0, 0.0), np.random.default_rng(1))
    d = (scores[1] - scores[0]).mean(axis=1)
    for level in (0.95, 0.99):
        found = seed_pairs(scores, ONE, TWO, level)
        assert found.over_tasks[0].tolist() == pytest.approx(list(stats.ttest_1samp(d, 0).confidence_interval(level)))
        assert found.difference[0] == pytest.approx(d.mean())


def test_spread_of_the_crossed_bootstrap_is_owens():
    """Var of the resampled mean given the data, worked out from the second moments of the counts."""
    d = np.random.default_rng(2).normal(size=(7, 4)) + np.arange(4)
    _, crossed = resampled_means(d, draws=60_000)
    table = d - d.mean()
    rows, columns, cells = (table.mean(axis=1) ** 2).mean() / 7, (table.mean(axis=0) ** 2).mean() / 4, 0.0
    rest = table - table.mean(axis=1)[:, None] - table.mean(axis=0)
    cells = (rest**2).mean() / 28
    assert crossed.var() == pytest.approx(rows + columns + cells, rel=0.03)


def test_without_seed_effect_the_seeds_add_nothing():
    one = runs(12, 1, (0.1, 0.0, 0.0), np.random.default_rng(3))
    found = seed_pairs(np.repeat(one, 3, axis=2), ONE, TWO)
    np.testing.assert_allclose(found.over_tasks, found.by_model)
    assert found.seed_share[0] == 0.0
    assert found.seeds_agreeing[0] == 3
    d = (one[1] - one[0])[:, 0]
    t = stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert found.by_model[0] == pytest.approx([t.low, t.high])  # then it is the t interval over tasks


def test_the_model_interval_of_equal_differences_is_a_point():
    scores = np.stack([np.zeros((5, 3)), np.full((5, 3), 0.25)])
    for found in model_intervals(scores, ONE, TWO):
        assert found.tolist() in ([[0.25, 0.25]], [0.0])


def test_pooled_over_two_designs_is_the_pair_alone():
    found = seed_pairs(runs(7, 3, (0.1, 0.1, 0.1), np.random.default_rng(6)), ONE, TWO)
    np.testing.assert_allclose(found.by_pooled, found.by_model, rtol=1e-9)


@pytest.mark.parametrize("level", [0.95, 0.99])
def test_pooled_interval_by_hand(level):
    """Four designs: the pair's own task mean square, the others' design x seed, Satterthwaite written out."""
    g = np.random.default_rng(7)
    scores = g.normal(size=(4, 6, 3)) + 2 * g.normal(size=(4, 1, 3)) + 3 * g.normal(size=(4, 6, 1))
    found = seed_pairs(scores, ONE, TWO, level)
    difference = scores[1] - scores[0]
    task = 3 * difference.mean(axis=1).var(ddof=1)
    cells = scores.mean(axis=1)
    interaction = cells - cells.mean(axis=0) - cells.mean(axis=1)[:, None] + cells.mean()
    seed = 2 * 6 * (interaction**2).sum() / (3 * 2)
    rest = 2 * mean_squares(scores)[REST][1]
    variance = (task + seed - rest) / 18
    freedom = (task + seed - rest) ** 2 / (task**2 / 5 + seed**2 / 6 + rest**2 / 30)
    reach = stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(variance)
    assert found.by_pooled[0] == pytest.approx([difference.mean() - reach, difference.mean() + reach])
    assert found.seed_share[0] == pytest.approx(min(1, seed / (task + seed - rest)))


def test_copies_of_one_run_are_no_seeds_of_the_pooled_interval():
    """Beside three designs of copies the interval of two others is what it is without them, and covers as said."""
    rng, covered = np.random.default_rng(8), {"others": 0, "beside a copy": 0}
    for _ in range(400):
        scores = rng.normal(size=(6, 1, 3)) + 0.5 * rng.normal(size=(6, 40, 1)) + 0.5 * rng.normal(size=(6, 40, 3))
        scores[3:] = scores[3:, :, :1] - scores[3:].mean(axis=1, keepdims=True)[..., :1]
        _, pooled, share = model_intervals(scores, np.array([0, 3, 3]), np.array([1, 0, 4]))
        _, alone, of_alone = model_intervals(scores[:3], ONE, TWO)
        assert pooled[0].tolist() == pytest.approx(alone[0].tolist(), rel=1e-12)
        assert share[0] == pytest.approx(of_alone[0])
        difference = (scores[4] - scores[3])[:, 0]
        over_tasks = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
        assert pooled[2].tolist() == pytest.approx([over_tasks.low, over_tasks.high])  # no seed moves either
        assert share[2] == 0
        for name, (low, high) in zip(covered, pooled[:2], strict=True):
            covered[name] += low <= 0 <= high
    assert min(covered.values()) > 0.92 * 400


def test_seeds_agreeing_and_share_by_hand():
    scores = np.zeros((2, 2, 3))
    scores[1] = [[3.0, 1.0, -1.0], [3.0, 1.0, -1.0]]  # only seeds differ: 3, 1, -1
    found = seed_pairs(scores, ONE, TWO)
    assert found.difference[0] == 1.0
    assert found.seeds_agreeing[0] == 2
    assert found.seed_share[0] == 1.0
    t = stats.ttest_1samp([3.0, 1.0, -1.0], 0).confidence_interval(0.95)
    assert found.by_model[0] == pytest.approx([t.low, t.high])  # then it is the t interval over seeds


@pytest.mark.parametrize(("tasks", "seeds"), [(40, 3), (8, 3), (8, 5)])
def test_the_model_covers_where_the_interval_over_tasks_alone_does_not(tasks, seeds):
    """Seeds as large as the rest, and tasks whose spread differs by a factor of ten (the bootstrap-t held 89 to 92)."""
    rng, covered = np.random.default_rng(4), dict.fromkeys(("over_tasks", "by_model"), 0)
    spread = np.geomspace(1, 10, tasks)[:, None] / np.sqrt((np.geomspace(1, 10, tasks) ** 2).mean())
    for _ in range(400):
        difference = 0.02 * spread * rng.normal(size=(tasks, 1)) + 0.01 * rng.normal(size=(1, seeds))
        difference = difference + 0.01 * rng.normal(size=(tasks, seeds))
        found = seed_pairs(np.stack([np.zeros((tasks, seeds)), difference]), ONE, TWO)
        for name in covered:
            low, high = getattr(found, name)[0]
            covered[name] += low <= 0 <= high
    assert covered["by_model"] > 0.91 * 400
    assert covered["over_tasks"] < covered["by_model"] - 0.01 * 400


def test_percentiles_are_numpys():
    values = np.random.default_rng(5).normal(size=(3, 1000))
    np.testing.assert_allclose(percentile_interval(values), np.quantile(values, [0.025, 0.975], axis=1).T)
    wanted = np.quantile(values[2] - values[0], [0.005, 0.995])
    np.testing.assert_allclose(pair_intervals(values, ONE, np.array([2]), 0.99), [wanted])


def test_sections_of_a_study_with_seeds(study, spread_scores, analyse_words):
    for k, design in enumerate(("eos-causal", "lastlayer-bi", "multilayer-causal")):
        for seed in (0, 1):
            study.run(design, spread_scores(0.3 + 0.1 * k + 0.01 * seed * (k + 1)), seed=seed)
    result = analyse_words(f"scores={study.root}")
    sections = {section.name: section for section in result.answers}
    seeds = sections["seeds"].frames["seeds"]
    assert len(seeds) == 3 * 3  # pairs x (two types and All)
    last = seeds[seeds["type"] == "All"].set_index("second").loc["multilayer-causal"]
    assert last["difference"].tolist() == pytest.approx([0.21, 0.105])
    assert last["seeds_agreeing"].tolist() == [2, 2]
    variance = sections["variance"].frames["variance"].set_index(["type", "component"])
    # seed 1 adds .01, .02, .03: the interaction is -+.005, 0, +-.005, with 2 degrees of freedom
    assert variance.loc[("All", "design x seed"), "estimate"] == pytest.approx(4 * 0.005**2 / 2)
    assert variance.loc[("All", "task x seed"), "estimate"] == 0.0
    assert any("with one seed carries a standard error of .0100" in note for note in result.notes)
    assert [grid.name for grid in sections["seeds"].grids] == ["seeds"]


def test_unequal_seeds_use_those_shared(study, spread_scores, analyse_words):
    for design, seeds in (("eos-causal", (0, 1, 2)), ("lastlayer-bi", (1, 2)), ("multilayer-causal", (1,))):
        for seed in seeds:
            study.run(design, spread_scores(0.3 + 0.001 * seed), seed=seed)
    result = analyse_words(f"scores={study.root}", "allow=[seed]")
    (section,) = [s for s in result.answers if s.name == "seeds"]
    rows = section.frames["seeds"]
    assert set(rows["n_seeds"]) == {2}
    assert set(rows["first"]) | set(rows["second"]) == {"eos-causal", "lastlayer-bi"}
    (note,) = [n for n in result.notes if n.startswith("The split by seeds uses")]
    assert "only the seeds 1, 2" in note
    assert "multilayer-causal with fewer than two seeds left out; further seeds of eos-causal not used" in note


def test_one_seed_is_one_note(planted, analyse_words):
    result = analyse_words(f"scores={planted().root}")
    assert not [s for s in result.answers if s.name == "seeds"]
    (section,) = [s for s in result.answers if s.name == "variance"]
    assert (section.grids, section.frames) == ([], {})
    assert sum("is the luck of a seed is not known" in note for note in result.notes) == 1


def test_designs_that_do_not_all_share_seeds_are_not_said_to_be_compared_over_tasks_alone(tmp_path, analyse_words):
    """a and b share seeds 0 to 2, c has others: each pair is tested over tasks and seeds all the same."""
    types = {f"t{k}": "STS" for k in range(12)}
    write_long(tmp_path / "t.csv", [np.full(12, 0.3), np.full(12, 0.4), np.full(12, 0.5)], "abc", types, seeds=3)
    table = pd.read_csv(tmp_path / "t.csv")
    table["seed"] += 4 * (table["model"] == "c")
    table.to_csv(tmp_path / "t.csv", index=False)
    for few, said in ((False, "by its own runs"), (True, "not of the designs trained again")):
        table[table["seed"] % 4 < (2 if few else 3)].to_csv(tmp_path / "t.csv", index=False)
        result = analyse_words(f"scores={tmp_path / 't.csv'}")
        (note,) = [note for note in result.notes if note.startswith("Seeds: ")]
        assert note.startswith("Seeds: the designs do not share two seeds, so ")
        assert said in note
        assert result.material.pairs["told"].any() == (not few)


def test_a_pair_that_further_seeds_tell_is_not_said_to_be_lost(tmp_path, analyse_words):
    """b is ahead of a over nine seeds; the three that c has as well scatter too far to show it."""
    rng, rows = np.random.default_rng(0), []
    for design, ahead, seeds in (("a", 0.0, 9), ("b", 0.02, 9), ("c", 0.0, 3)):
        of_seed = np.where(np.arange(9) < 3, [-0.03, 0.0, 0.03] * 3, 0.0) * (design == "b")
        runs = 0.5 + ahead + rng.normal(0, 0.005, (20, 1)) + of_seed + rng.normal(0, 0.002, (20, 9))
        rows += [(design, f"t{t}", "STS", seed, runs[t, seed]) for t in range(20) for seed in range(seeds)]
    frame = pd.DataFrame(rows, columns=["model", "task", "type", "seed", "score"])
    for lost, kept in ((True, frame[frame["seed"] < 3]), (False, frame)):
        kept.to_csv(tmp_path / "s.csv", index=False)
        result = analyse_words(f"scores={tmp_path / 's.csv'}")
        told = result.material.pairs.set_index(["first", "second"]).loc[("a", "b"), "told"]
        (seeds,) = (answer for answer in result.answers if answer.name == "seeds")
        row = seeds.frames["seeds"].set_index(["first", "second"]).loc[("a", "b")]
        assert row["n_seeds"] == 3
        assert row["low_by_model"] < 0 < row["low_over_tasks"]
        assert (bool(told), any("b - a" in note for note in seeds.notes if "not shown" in note)) == (not lost, lost)
