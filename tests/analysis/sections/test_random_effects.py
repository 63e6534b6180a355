"""The table of tasks beyond the noise of their items: what goes in, what is left out and said."""

import numpy as np
import pytest
from scipy import stats

from analysis.questions.random_effects import _combined, _Task
from analysis.settings import Settings
from analysis.statistics.items import item_variances
from analysis.statistics.random_effects import random_effects
from tests.analysis.item_files import item_files

ASKED = ("random_effects",)
DESIGNS = ("eos-causal", "lastlayer-bi", "multilayer-causal")
MEASURED = [f"Retrieval{k}" for k in range(5)]


@pytest.fixture
def with_items(study, spread_scores):
    """Three designs with three seeds; five tasks have queries whose mean is the score, STS0 pairs of texts."""
    rng, items = np.random.default_rng(0), {}
    truth = np.round(rng.uniform(0, 5, 60))
    for seed in range(3):
        for k, design in enumerate(DESIGNS):
            scores = spread_scores(0.3)
            for place, task in enumerate(MEASURED):
                own = 0.3 + 0.05 * k * (place - 1) + 0.1 * rng.normal(size=20 + 10 * place)
                items[design, task, seed] = own
                scores[task] = own.mean()
            items[design, "STS0", seed] = truth + (k + 1) * rng.normal(size=60)
            scores["STS0"] = stats.spearmanr(items[design, "STS0", seed], truth).statistic
            study.run(design, scores, seed=seed)
    for (design, task, seed), own in items.items():
        is_sts = task == "STS0"
        about = ("cosine_spearman", truth) if is_sts else ("ndcg_at_10", None)
        item_files(study, {design: own}, *about, task=task, seed=seed)
    return study, items


def section(result):
    return next((one for one in result.answers if one.name == "random_effects"), None)


def test_tasks_are_combined_with_the_variances_of_their_items(with_items, analyse_words):
    study, items = with_items
    found = section(analyse_words(f"scores={study.root}"))
    table = found.frames["random_effects"].set_index(["type", "first", "second"])
    one, other = DESIGNS[0], DESIGNS[2]
    own = [np.mean([items[other, t, s] - items[one, t, s] for s in range(3)], axis=0) for t in MEASURED]
    y, v = (np.array([[f(x) for x in own]]) for f in (np.mean, lambda x: x.var(ddof=1) / len(x)))
    wanted = random_effects(y, v, np.array([len(x) - 1.0 for x in own]))
    row = table.loc[("Retrieval", one, other)]
    for name in ("mean", "low", "high", "p", "tau", "new_low", "q", "p_q", "i2"):
        assert row[name] == pytest.approx(getattr(wanted, name)[0]), name
    assert (row["n_tasks"], row["n_items"], row["n_seeds"], row["family_size"]) == (5, 200, 3, 3)
    assert row["error_items"] == pytest.approx(np.sqrt(v.mean()))
    cube = np.array([[(items[other, t, s] - items[one, t, s]).mean() for s in range(3)] for t in MEASURED])
    left = cube - cube.mean(axis=0) - cube.mean(axis=1, keepdims=True) + cube.mean()
    with_seed = []
    for task in MEASURED:
        d = np.array([items[other, task, s] - items[one, task, s] for s in range(3)])
        rest = d - d.mean(axis=0) - d.mean(axis=1, keepdims=True) + d.mean()
        with_seed.append((rest**2).sum() / 2 / (d.shape[1] - 1) / 3 / d.shape[1])
    of_seeds = max(0, (left**2).sum() / (4 * 2) / 3 - np.mean(with_seed))
    assert row["error_seeds"] == pytest.approx(np.sqrt(of_seeds))
    beyond = random_effects(y, v + row["error_seeds"] ** 2, np.array([len(x) - 1.0 for x in own]))
    assert (row["tau_seeds"], row["p_q_seeds"]) == pytest.approx((beyond.tau[0], beyond.p_q[0]))
    assert table.loc[("All", one, other), "n_tasks"] == 6
    tasks = found.csv["random_effects_tasks"]
    assert (len(tasks), set(tasks["task"])) == (18, {*MEASURED, "STS0"})


def test_what_is_said_of_it(with_items, analyse_words):
    study, _ = with_items
    found = section(analyse_words(f"scores={study.root}"))
    said, left_out = found.notes
    assert "of 3 pairs differ over tasks by more than their items' noise explains (Q after Holm)" in said
    assert "Retrieval5, Retrieval6" in left_out
    assert "without items" in left_out
    assert " by more than items and seeds do." in said
    assert "STS0" not in left_out
    assert "Retrieval0" not in left_out
    (grid,) = found.grids
    assert "No star" in grid.caption
    assert not any(cell.mark for row in grid.rows for cell in row)
    in_percent = section(analyse_words(f"scores={study.root}", "unit=percent", "digits=3"))
    mean = in_percent.frames["random_effects"].set_index("type").loc["All", "mean"].iloc[0]
    assert in_percent.grids[0].rows[0][1].text == f"{100 * mean:+.3f}"
    assert in_percent.grids[0].caption.endswith("times 100.")


def test_designs_and_tasks_without_items_are_left_out(with_items, analyse_words):
    study, _ = with_items
    for path in study.root.glob("predictions/s__lastlayer-bi/*/*"):
        path.unlink()
    for path in study.root.glob("predictions/s__multilayer-causal/*/Retrieval4_items.json"):
        path.unlink()
    found = section(analyse_words(f"scores={study.root}"))
    table = found.frames["random_effects"]
    assert table[["type", "first", "second", "n_tasks"]].to_numpy().tolist() == [
        ["Retrieval", DESIGNS[0], DESIGNS[2], 4],
        ["All", DESIGNS[0], DESIGNS[2], 5],
    ]
    for path in study.root.glob("predictions/*/*/Retrieval[1-3]_items.json"):
        path.unlink()
    assert section(analyse_words(f"scores={study.root}")) is None
    assert section(analyse_words(f"scores={study.root}", "items=none")) is None


def test_only_common_seeds_count(with_items, analyse_words):
    study, items = with_items
    for path in study.root.glob("predictions/s__eos-causal/seed2@*/*"):
        path.unlink()
    table = section(analyse_words(f"scores={study.root}", "types=[Retrieval]")).frames["random_effects"]
    row = table.set_index(["first", "second"]).loc[(DESIGNS[1], DESIGNS[2])]
    assert row["n_seeds"] == 2
    own = [np.mean([(items[DESIGNS[2], t, s] - items[DESIGNS[1], t, s]).mean() for s in (0, 1)]) for t in MEASURED]
    assert row["difference"] == pytest.approx(np.mean(own))


def test_what_seeds_do_to_tasks_is_no_difference_between_tasks_beyond_seeds():
    """300 pairs with the same true difference on 40 tasks of 50 items, whose noise is partly that of a seed."""
    rng, seeds, first = np.random.default_rng(1), [str(k) for k in range(3)], np.arange(300)
    tasks, zero = [], np.zeros((300, 3, 50))
    for _ in range(40):
        items = rng.normal(size=(300, 1, 50)) + rng.normal(size=(300, 3, 50)) + 0.3 * rng.normal(size=(300, 3, 1))
        of_items = item_variances("mean", np.concatenate([zero, items]), np.zeros(0), first, first + 300)
        tasks.append(_Task(items.mean(axis=2), of_items, 50, seeds))
    pairs = {"first": ["a"] * 300, "second": ["b"] * 300}
    found = _combined("All", pairs, tasks, Settings(scores=()))
    assert (found["p_q"] <= 0.05).mean() > 0.9
    assert (found["p_q_seeds"] <= 0.05).mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)
    assert (found["error_seeds"] ** 2).mean() == pytest.approx(0.3**2 / 3, rel=0.05)


def test_a_pair_that_differs_on_no_item_has_no_row(study, spread_scores, analyse_words):
    """The second design is the first plus .1 on every item, whose float noise is no variance; the third is random."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        common = {task: 0.5 * np.round(rng.random(30), 5) for task in MEASURED}
        for k, design in enumerate(DESIGNS):
            scores = spread_scores(0.3)
            items = {task: common[task] + 0.1 * k if k < 2 else rng.random(30) for task in MEASURED}
            study.run(design, scores | {task: float(own.mean()) for task, own in items.items()}, seed=seed)
            for task, own in items.items():
                item_files(study, {design: own}, "ndcg_at_10", None, task=task, seed=seed)
    found = section(analyse_words(f"scores={study.root}")).frames["random_effects"]
    pairs = {frozenset(pair) for pair in found[["first", "second"]].to_numpy().tolist()}
    assert pairs == {frozenset((DESIGNS[2], other)) for other in DESIGNS[:2]}
    assert found["p_adjusted"].between(0, 1).all()
