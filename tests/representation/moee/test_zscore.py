"""Standardisation by batch against scipy batch by batch, and the pooler with standardise=batch run by itself."""

import numpy as np
import pytest
from scipy.stats import zscore
from sklearn.metrics import average_precision_score

from encoders.loading import untrained
from evaluation.variants import pooler_config
from representation.moee.batch_zscore import batches_of, harm, raw_parts, vectors_of
from representation.moee.pair_tasks import pair_tasks
from tests.representation.moee.moee_settings import asked

WORDS = ["batch_zscore.pairs=24", "batch_zscore.batches=[4,16]", "batch_zscore.orders=3"]


@pytest.fixture(scope="module")
def moe(small_moe, tmp_path_factory):
    return asked(small_moe, tmp_path_factory.mktemp("zscore"), *WORDS)


def task_of(texts):
    (task,) = pair_tasks(list(texts.task_set.data.values()), 24, 0)
    return task


@pytest.mark.parametrize(("count", "size", "sizes"), [(10, 4, [4, 4, 2]), (9, 4, [4, 5]), (3, 8, [3]), (5, 4, [5])])
def test_batches_hold_every_text_once_and_none_alone(count, size, sizes):
    cut = batches_of(count, size, 0)
    assert [len(places) for places in cut] == sizes
    assert sorted(np.concatenate(cut)) == list(range(count))
    assert not np.array_equal(np.concatenate(batches_of(50, 8, 0)), np.concatenate(batches_of(50, 8, 1)))


def test_vectors_against_scipy():
    rng = np.random.default_rng(0)
    parts = {"HS": rng.normal(size=(7, 4)).astype(np.float32), "RW": rng.random((7, 3)).astype(np.float32)}
    cut = [np.array([3, 0, 6]), np.array([1, 2, 4, 5])]
    scored = {name: np.empty((7, x.shape[1])) for name, x in parts.items()}
    for places in cut:
        for name, x in parts.items():
            scored[name][places] = zscore(x[places].astype(float), ddof=1)
    joined = np.hstack([scored["HS"], scored["RW"]])
    unit = {name: x / np.linalg.norm(x, axis=1, keepdims=True) for name, x in scored.items()}
    wanted = {"concat": joined, "routing": scored["RW"], "sum": np.hstack([unit["HS"], 0.7**0.5 * unit["RW"]])}
    for variant, x in wanted.items():
        found = vectors_of(parts, cut, variant, 0.7)
        np.testing.assert_allclose(found, x / np.linalg.norm(x, axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("variant", ["routing", "concat", "sum"])
def test_one_batch_is_the_pooler_of_the_published_code(moe, variant):
    """All texts in one batch: pooler.standardise=batch with a budget that takes them at once."""
    (studied,), texts, _ = moe
    task, parts = task_of(texts), raw_parts(studied, task_of(texts))
    pooler = {**pooler_config(f"moee:{variant}", studied.config), "standardise": "batch"}
    wanted = untrained({**studied.config, "pooler": pooler, "token_budget": 10**6}).encode(task.texts)
    found = vectors_of(parts, [np.arange(len(task.texts))], variant, 1.0)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    bare = untrained({**studied.config, "pooler": pooler | {"standardise": "none"}}).encode(task.texts)
    np.testing.assert_allclose(vectors_of(parts, None, variant, 1.0), bare, atol=1e-5)


def test_harm_against_a_loop(moe):
    (studied,), texts, _ = moe
    task = task_of(texts)
    parts = raw_parts(studied, task)
    vectors = [vectors_of(parts, batches_of(len(task.texts), 4, seed), "concat", 1.0) for seed in range(3)]
    place = task.texts.index
    scores = [
        average_precision_score(
            task.truth, [v[place(a)] @ v[place(b)] for a, b in zip(task.left, task.right, strict=True)]
        )
        for v in vectors
    ]
    found = harm(task, parts, "concat", 1.0, size=4, orders=3)
    assert found["mean"] == pytest.approx(np.mean(scores))
    assert found["spread"] == pytest.approx(np.std(scores, ddof=1))
    assert (found["low"], found["high"]) == pytest.approx((min(scores), max(scores)))
    steps = [abs(vectors[1] - vectors[0]).max(), abs(vectors[2] - vectors[1]).max()]
    assert found["entry"] == pytest.approx(max(steps))
    still = harm(task, parts, "concat", 1.0, size=0, orders=3)
    assert (still["spread"], still["entry"], still["cosine"]) == (0, 0, 1)
