"""HS against RW on a small mixture of experts, and the numbers of its tables against the parts they are made of."""

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from encoders.loading import untrained
from evaluation.variants import pooler_config
from representation.moee.clusters import agreement, partition
from representation.moee.complementarity import compared, section
from representation.moee.pair_tasks import pair_tasks
from tests.representation.moee.moee_settings import asked

WORDS = ["complementarity.starts=2", "complementarity.clusters=[3]", "attn=bi"]


@pytest.fixture(scope="module")
def moe(small_moe, tmp_path_factory):
    return asked(small_moe, tmp_path_factory.mktemp("complementarity"), *WORDS)


def alone(studied, word):
    return untrained({**studied.config, "pooler": pooler_config(word, studied.config)})


def test_the_answer_is_that_of_each_variant_run_alone(moe):
    encoders, texts, settings = moe
    (studied,) = encoders
    found = section(encoders, texts, settings)
    clusters = found.frames["complementarity_clusters"].set_index("compared")
    wanted = list(dict.fromkeys(t.text for t in texts.every))
    hs, rw = (alone(studied, word).encode(wanted) for word in ("moee:hidden", "moee:routing"))
    assert clusters.loc["HS with RW", "rand"] < 1
    for key in ("rand", "nmi", "exact"):
        assert clusters.loc["HS with itself", key] >= clusters.loc["HS with RW", key]
    direct = [agreement(partition(hs, 3, seed), partition(rw, 3, seed)) for seed in range(2)]
    for key in ("rand", "mutual", "nmi", "jaccard", "exact", "matched_jaccard"):
        assert np.mean([d[key] for d in direct]) == pytest.approx(clusters.loc["HS with RW", key])
    (task,) = pair_tasks(list(texts.task_set.data.values()), 2560, 0)
    similar = [task.similarities(alone(studied, w).encode(task.texts)) for w in ("moee:hidden", "moee:routing")]
    row = found.frames["complementarity_pairs"].iloc[0]
    assert row["spearman"] == pytest.approx(spearmanr(*similar).statistic, abs=1e-3)
    off = [abs(rankdata(s) - rankdata(task.truth)) / len(s) > 0.25 for s in similar]
    at = found.frames["complementarity_failures"].set_index("threshold").loc[0.25]
    assert at["pairs"] == (off[0] | off[1]).sum()
    assert at["both"] == pytest.approx((off[0] & off[1]).sum() / at["pairs"])
    assert at["one_alone"] == pytest.approx((off[0] & ~off[1]).sum() / at["pairs"])
    of_hs = found.frames["complementarity_topics"].query("variant == 'HS'")["texts"]
    assert list(of_hs) == sorted(np.bincount(partition(hs, 3, 0)), reverse=True)


def test_what_is_the_same_agrees_and_what_is_shuffled_does_not():
    rng = np.random.default_rng(0)
    topics = np.repeat(np.eye(4, 8), 30, axis=0)
    hs, rw = ((topics + rng.normal(size=topics.shape) * 0.02).astype(np.float32) for _ in range(2))
    rows = {row["compared"]: row for row in compared({"HS": hs, "RW": rw}, 4, 2)}
    for what in ("HS with RW", "HS with itself", "RW with itself"):
        assert rows[what]["exact"] == rows[what]["rand"] == 1
    assert abs(rows["HS with RW shuffled"]["rand"]) < 0.1
