"""Queries by kind: every number against its definition written out, old files, and the level without an effect."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.questions.fine_retrieval import _halved, _interactions
from analysis.scores.items import Items
from analysis.statistics.correction import holm
from tests.analysis.item_files import item_files
from tests.analysis.sections.test_by_type import material

ASKED = ("fine_retrieval",)
DESIGNS = ("eos-causal", "lastlayer-bi", "multilayer-causal")
TASKS = [f"Retrieval{k}" for k in range(8)]
N = 40


@pytest.fixture(scope="module")
def with_features(new_study):
    """Three designs with three seeds; the last gains with overlap on every task, the second nowhere."""
    rng, study, items = np.random.default_rng(0), new_study(), {}
    features = {task: rng.uniform(size=N).round(2) for task in TASKS}
    for seed in range(3):
        for k, design in enumerate(DESIGNS):
            for task in TASKS:
                gain = 0.2 * (k == 2) * features[task]
                items[design, task, seed] = 0.3 + gain + 0.1 * rng.normal(size=N)
            study.run(design, {task: float(items[design, task, seed].mean()) for task in TASKS}, seed=seed)
    for (design, task, seed), own in items.items():
        lengths = [None, *range(N - 1)]  # one query has no relevant document
        of_texts = {"overlap": list(features[task]), "query_words": [3.0] * N, "document_words": lengths}
        item_files(study, {design: own}, task=task, seed=seed, features=of_texts)
    return study, items, features


def section(result):
    return next((one for one in result.answers if one.name == "fine_retrieval"), None)


def test_every_number_is_its_definition(with_features, analyse_words):
    study, items, features = with_features
    found = section(analyse_words(f"scores={study.root}"))
    cells = np.empty((2, 3, 8, 3))  # half, design, task, seed
    for (design, task, seed), own in items.items():
        upper = features[task] > np.median(features[task])
        for half, kept in enumerate((~upper, upper)):
            cells[half, DESIGNS.index(design), TASKS.index(task), seed] = own[kept].mean()
    change = cells[1] - cells[0]
    table = found.frames["fine_retrieval"].set_index(["type", "first", "second"])
    halves = found.frames["fine_retrieval_halves"].set_index(["part", "type", "first", "second"])
    raw = []
    for one, other in ((0, 1), (0, 2), (1, 2)):
        pair, d = (DESIGNS[one], DESIGNS[other]), change[other] - change[one]
        row = table.loc[("overlap", *pair)]
        assert row["mean"] == pytest.approx(d.mean())
        assert row["p"] == pytest.approx(stats.wilcoxon(d.mean(axis=1), method="exact").pvalue)
        raw.append(row["p"])
        for half, name in enumerate(("lower", "upper")):
            of_half = halves.loc[(name, "overlap", *pair)]
            assert of_half["mean"] == pytest.approx((cells[half, other] - cells[half, one]).mean())
            assert of_half["low"] < of_half["mean"] < of_half["high"]
    of_overlap = table.loc["overlap"]
    np.testing.assert_allclose(of_overlap["p_adjusted"], holm(np.array(raw)))
    assert of_overlap["told"].tolist() == [False, True, True]
    assert set(table.index.get_level_values("type")) == {"overlap", "document_words"}  # all queries are as long
    tests = found.frames["fine_retrieval_tests"].set_index("type")
    by_task = change.mean(axis=2)  # the statistic of all sign flips, from sums of squares between designs
    flips = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    spread = (flips @ by_task.T).var(axis=1)
    assert tests.loc["overlap", "p"] == pytest.approx(np.mean(spread >= by_task.sum(axis=1).var() - 1e-12))
    np.testing.assert_allclose(tests["p_adjusted"], holm(tests["p"].to_numpy()))
    assert tests["told"].to_dict() == {"document_words": False, "overlap": True}


def test_what_is_shown_and_said(with_features, analyse_words):
    study, items, features = with_features
    found = section(analyse_words(f"scores={study.root}", "against=lastlayer-bi"))
    (grid,) = found.grids
    rows = {(row[0].text, row[1].text): row for row in grid.rows}
    assert len(rows) == 6
    reference = rows["shared words", "lastlayer-bi"]
    upper = [own[features[t] > np.median(features[t])].mean() for (d, t, _), own in items.items() if d == DESIGNS[1]]
    assert float(reference[3].text) == pytest.approx(np.mean(upper), abs=5e-5)
    assert reference[4].text == "-"
    ahead, behind = (rows["shared words", d][4] for d in (DESIGNS[2], DESIGNS[0]))
    assert (ahead.mark, behind.mark) == ("*", "")
    assert float(ahead.text) > 0.05
    assert "told: shared words" in found.notes[0]


def test_the_level_where_features_say_nothing():
    """Features dealt out anew within each task: the exact test keeps .05, and both tests together stay below it."""
    rng, rejected, sets = np.random.default_rng(1), np.zeros(2), 120
    of = material(np.full((4, 8, 3), 0.5), ("a-b", "c-d", "e-f", "g-h"), kinds=("Retrieval",))
    for _ in range(sets):
        every = [Items(t, "Retrieval", "", "x", "mean", [""] * N, np.zeros(0), Path(), _random(rng)) for t in TASKS]
        for items in every:
            own = 0.5 + rng.normal(0, 0.2, N)
            items.values = {(d, str(s)): own + rng.normal(0, 0.1, N) for d in of.designs for s in range(3)}
        row = _interactions(_halved(every, of), of.settings).iloc[0]
        rejected += [row["p"] <= 0.05, row["told"]]
    assert rejected[0] <= 0.05 * sets + 4 * np.sqrt(sets * 0.05 * 0.95)
    assert rejected[0] > 0
    assert rejected[1] <= rejected[0]


def _random(rng):
    return {"overlap": rng.uniform(size=N)}
