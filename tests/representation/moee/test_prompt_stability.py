"""Statistics over prompts against loops over prompts, with scipy and sklearn, on data and on samples written out."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm, sem, spearmanr
from sklearn.metrics import average_precision_score

from evaluation.tasks.task_data import TaskData
from representation.moee.pair_tasks import PairTask, draws, left_out, once, pair_tasks
from representation.moee.prompt_stability import FLOORS, correlation_matrix, measured, over_tasks, stability

RNG = np.random.default_rng(0)
N, PROMPTS = 20, 3
UNITS = np.repeat(np.arange(10), 2)
LABELS = (np.arange(N) % 2).astype(float)
GRADES = RNG.integers(0, 5, N).astype(float)
SIMILARITIES = {name: RNG.normal(size=(PROMPTS, N)) + LABELS * lift for name, lift in (("HS", 0.5), ("RW", 1.0))}
COUNTS = np.concatenate([once(N), draws(UNITS, 150, seed=0)])


def task(kind):
    names = [f"t{i}" for i in range(N)]
    return PairTask("x", kind, names, names, LABELS if kind == "PairClassification" else GRADES, UNITS)


def literal(kind, places):
    """The statistics of one sample, loop by loop."""
    score = (
        (lambda s: average_precision_score(LABELS[places], s[places]))
        if kind == "PairClassification"
        else (lambda s: spearmanr(s[places], GRADES[places]).statistic)
    )
    found = {}
    for name, rows in SIMILARITIES.items():
        scores = [score(row) for row in rows]
        found[name, "mean"], found[name, "spread"] = np.mean(scores), np.std(scores, ddof=1)
        pairs = [spearmanr(rows[i][places], rows[j][places]).statistic for i, j in combinations(range(PROMPTS), 2)]
        found[name, "agreement"] = np.mean(pairs)
    across = [spearmanr(a[places], b[places]).statistic for a in SIMILARITIES["HS"] for b in SIMILARITIES["RW"]]
    return found | {("HS-RW", "agreement"): np.mean(across)}


@pytest.mark.parametrize("kind", ["PairClassification", "STS"])
def test_against_loops(kind):
    found = measured(task(kind), SIMILARITIES, COUNTS)
    for r in (0, 1, 120, 150):  # the samples are ranked in two slices
        wanted = literal(kind, np.repeat(np.arange(N), COUNTS[r].astype(int)))
        assert {key: samples[r] for key, samples in found.items()} == pytest.approx(wanted)


def test_tasks_count_once_and_differences_are_paired():
    samples = np.concatenate([once(N), left_out(UNITS)])
    each = [measured(task(kind), SIMILARITIES, samples) for kind in ("PairClassification", "STS")]
    both = over_tasks(each)
    rows = {(row["reading"], row["statistic"]): row for row in stability(both)}
    for key in each[0]:
        assert rows[key]["value"] == pytest.approx((each[0][key][0] + each[1][key][0]) / 2)
    apart = rows["RW minus HS", "spread"]
    assert apart["value"] == pytest.approx(both["RW", "spread"][0] - both["HS", "spread"][0])
    assert apart["low"] < apart["value"] < apart["high"]
    same = stability(both | {("RW", statistic): both["HS", statistic] for statistic in FLOORS})[-1]
    assert (same["reading"], same["value"], same["low"], same["high"]) == ("RW minus HS", 0, 0, 0)


def test_standard_error_of_a_mean_is_that_of_the_textbook():
    """The jackknife of a mean gives its classical standard error; over two tasks the variances add, over four.

    Read off the difference, which no least value cuts: RW is twice HS, so that it is HS again.
    """
    samples = [RNG.normal(size=30), RNG.normal(size=12) * 3]
    each = [np.array([x.mean(), *(np.delete(x, i).mean() for i in range(len(x)))]) for x in samples]
    tasks = [{(r, s): times * x for r, times in (("HS", 1), ("RW", 2)) for s in FLOORS} for x in each]
    for x, task in zip(samples, tasks, strict=True):
        found = stability(over_tasks([task]))[-1]
        assert found["high"] - found["value"] == pytest.approx(norm.ppf(0.975) * sem(x))
    found = stability(over_tasks(tasks))[-1]
    assert found["value"] - found["low"] == pytest.approx(norm.ppf(0.975) * np.hypot(*map(sem, samples)) / 2)


def test_a_spread_has_no_negative_end():
    parts = {(reading, statistic): np.array([0.1, 5.0]) for reading in ("HS", "RW") for statistic in FLOORS}
    lows = {(row["reading"], row["statistic"]): row["low"] for row in stability(parts)}
    assert lows["HS", "spread"] == 0
    assert lows["RW", "mean"] == lows["RW", "agreement"] == -1


def test_matrix_has_readings_in_order():
    matrix = correlation_matrix(SIMILARITIES)
    assert matrix.shape == (6, 6)
    assert matrix[1, 4] == pytest.approx(spearmanr(SIMILARITIES["HS"][1], SIMILARITIES["RW"][1]).statistic)


def test_pair_tasks_are_read_in_whole_units():
    rows = {"sentence1": list("aabbccdd"), "sentence2": list("12345678"), "labels": [1, 0] * 4}
    content = {"train": {"sentence1": ["z"], "sentence2": ["z"], "labels": [1]}, "test": rows}
    data = TaskData("T", "PairClassification", "max_ap", "made", content)
    other = TaskData("C", "Clustering", "v_measure", "made", {"test": {"sentences": ["a"], "labels": [0]}})
    (found,) = pair_tasks([data, other], most=5, seed=0)
    assert len(found.left) == 4
    assert found.units.tolist() == [0, 0, 1, 1]
    assert found.left[0] == found.left[1] != found.left[2] == found.left[3]
    assert (found.truth == [1, 0, 1, 0]).all()
    assert set(found.texts) == {*found.left, *found.right}
    (whole,) = pair_tasks([data], most=100, seed=0)
    assert sorted(whole.right) == list("12345678")
    vectors = RNG.normal(size=(len(whole.texts), 4)).astype(np.float32)
    place = whole.texts.index
    for similarity, a, b in zip(whole.similarities(vectors), whole.left, whole.right, strict=True):
        one, two = vectors[place(a)].astype(float), vectors[place(b)].astype(float)
        assert similarity == pytest.approx(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
