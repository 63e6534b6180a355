"""The question of prompts on a small mixture of experts, against each pooler under each prompt run by itself."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from cli.compose import composed, plain
from encoders.loading import untrained
from encoders.templates import pieces
from evaluation.tasks.task_data import TaskData
from representation.moee.pair_tasks import PairTask, pair_tasks
from representation.moee.prompts import correlations, prompt_templates, section, similarities, stability, worded
from tests.representation.moee.moee_settings import asked

WORDS = ["prompts.pairs=16", "prompts.alpha=0.5"]
WORDINGS = plain(composed("representation"))["prompts"]["wordings"]


@pytest.fixture(scope="module")
def moe(small_moe, tmp_path_factory):
    return asked(small_moe, tmp_path_factory.mktemp("prompts"), *WORDS)


def test_the_nine_prompts_read_the_text_within_words():
    templates = prompt_templates(WORDINGS)
    assert len(templates) == 9
    for template in templates.values():
        before, text, after = pieces(template.query.bare)
        assert text == "{text}"
        assert before.strip()
        assert after.strip()
        assert not template.eos


def test_a_prompt_cuts_no_text(moe):
    """Under every prompt a long text has the tokens that it has with none."""
    (studied,), _, settings = moe
    encoder = studied.encoder()
    long = "the sum of two arrays " * 40
    (bare,) = encoder.tokenizer([long])
    assert len(bare) == settings["max_length"]
    for template in prompt_templates(WORDINGS).values():
        (row,) = worded(encoder, template).tokenizer([long])
        text = [i for i, role in zip(row.ids, row.roles, strict=True) if role == 2]
        assert text == bare.ids[:-1], template.name
        assert row.ids[-1] != bare.ids[-1], "a prompt's last token is its own, not EOS"


def test_similarities_are_those_of_each_pooler_alone(moe):
    (studied,), texts, _ = moe
    templates = dict(list(prompt_templates(WORDINGS).items())[2:4])
    tasks = pair_tasks(list(texts.task_set.data.values()), 16, 0)
    (held,) = similarities(studied, templates, tasks, 0.5)
    for variant, words in {"HS": {"variant": "hidden"}, "RW": {"variant": "routing"}, "sum": {"alpha": 0.5}}.items():
        for k, template in enumerate(templates.values()):
            form = {"bare": template.query.bare, "instructed": template.query.bare}
            own = {"name": template.name, "query": form, "document": form, "eos": False}
            pooler = {**_moee(studied), **words}
            length = worded(studied.encoder(), template).max_length
            alone = untrained({**studied.config, "template": own, "pooler": pooler, "max_length": length})
            vectors = alone.encode(tasks[0].texts)
            np.testing.assert_allclose(held[variant][k], tasks[0].similarities(vectors), atol=1e-6)


def _moee(studied):
    from evaluation.variants import pooler_config

    return pooler_config("moee:sum", studied.config)


def test_the_answer(moe):
    encoders, texts, settings = moe
    found = section(encoders, texts, settings)
    scores, stability = found.frames["prompts_scores"], found.frames["prompts_stability"]
    assert len(scores) == 9 * 3
    by_variant = scores.groupby("variant")["score"]
    for variant in ("HS", "RW", "sum"):
        own = stability[stability["variant"] == variant].set_index("statistic")
        assert own.loc["mean", "value"] == pytest.approx(by_variant.mean()[variant])
        assert own.loc["spread", "value"] == pytest.approx(by_variant.std()[variant])
    assert [d.name for d in found.draw()] == ["prompts_agreement"]


def test_dense_decoders_are_not_asked(small_model, tmp_path):
    assert section(*asked(small_model, tmp_path, *WORDS)) is None


RNG = np.random.default_rng(0)
N, PROMPTS = 20, 3
LABELS, GRADES = (np.arange(N) % 2).astype(float), RNG.integers(0, 5, N).astype(float)
SIMILARITIES = {name: RNG.normal(size=(PROMPTS, N)) + LABELS * lift for name, lift in (("HS", 0.5), ("RW", 1.0))}
NAMES = [f"t{i}" for i in range(N)]
TASKS = [PairTask("a", "PairClassification", NAMES, NAMES, LABELS), PairTask("b", "STS", NAMES, NAMES, GRADES)]


def literal(kind):
    """The statistics of one task, loop by loop."""
    found = {}
    for name, rows in SIMILARITIES.items():
        if kind == "STS":
            scores = [spearmanr(row, GRADES).statistic for row in rows]
        else:
            scores = [average_precision_score(LABELS, row) for row in rows]
        found[name, "mean"], found[name, "spread"] = np.mean(scores), np.std(scores, ddof=1)
        pairs = [spearmanr(rows[i], rows[j]).statistic for i, j in combinations(range(PROMPTS), 2)]
        found[name, "agreement"] = np.mean(pairs)
    across = [spearmanr(a, b).statistic for a in SIMILARITIES["HS"] for b in SIMILARITIES["RW"]]
    return found | {("HS-RW", "agreement"): np.mean(across)}


def test_statistics_are_those_of_loops_and_tasks_count_once():
    one, other = literal("PairClassification"), literal("STS")
    found = {(row["variant"], row["statistic"]): row["value"] for row in stability([SIMILARITIES] * 2, TASKS)}
    assert found == pytest.approx({key: (one[key] + other[key]) / 2 for key in one})


def test_the_map_has_every_two_prompts():
    cells = {(row["one"], row["other"]): row["rho"] for row in correlations([SIMILARITIES], list("xyz"))}
    assert len(cells) == 6 * 6
    wanted = spearmanr(SIMILARITIES["HS"][1], SIMILARITIES["RW"][2]).statistic
    assert cells["HS y", "RW z"] == pytest.approx(wanted)


def test_pair_tasks_are_read_in_whole_units():
    rows = {"sentence1": list("aabbccdd"), "sentence2": list("12345678"), "labels": [1, 0] * 4}
    content = {"train": {"sentence1": ["z"], "sentence2": ["z"], "labels": [1]}, "test": rows}
    data = TaskData("T", "PairClassification", "max_ap", "made", content)
    other = TaskData("C", "Clustering", "v_measure", "made", {"test": {"sentences": ["a"], "labels": [0]}})
    (found,) = pair_tasks([data, other], most=5, seed=0)
    assert found.left[0] == found.left[1] != found.left[2] == found.left[3]
    assert (found.truth == [1, 0, 1, 0]).all()
    (whole,) = pair_tasks([data], most=100, seed=0)
    assert sorted(whole.right) == list("12345678")
    vectors = RNG.normal(size=(len(whole.texts), 4)).astype(np.float32)
    place = whole.texts.index
    for similarity, a, b in zip(whole.similarities(vectors), whole.left, whole.right, strict=True):
        one, two = vectors[place(a)].astype(float), vectors[place(b)].astype(float)
        assert similarity == pytest.approx(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
