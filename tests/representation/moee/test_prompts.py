"""The question of prompts on a small mixture of experts, against each pooler under each prompt run by itself."""

import numpy as np
import pytest

from cli.errors import UserError
from encoders.loading import untrained
from encoders.templates import pieces
from representation.moee.pair_tasks import pair_tasks
from representation.moee.prompts import answer, prompt_templates, similarities, worded
from representation.write import markdown
from tests.representation.moee.moee_settings import asked

WORDS = ["prompts.pairs=16", "prompts.alpha=0.5"]


@pytest.fixture(scope="module")
def moe(small_moe, tmp_path_factory):
    return asked(small_moe, tmp_path_factory.mktemp("prompts"), *WORDS)


def test_the_nine_prompts_read_the_text_within_words():
    templates = prompt_templates("moee")
    assert len(templates) == 9
    for template in templates.values():
        before, text, after = pieces(template.query.bare)
        assert text == "{text}"
        assert before.strip()
        assert after.strip()
        assert not template.eos
    with pytest.raises(UserError, match=r"no prompts.wordings=moe in conf/tables/prompts.yaml.*Nearest: moee"):
        prompt_templates("moe")


def test_a_prompt_cuts_no_text(moe):
    """Under every prompt a long text has the tokens that it has with none."""
    (studied,), _, settings = moe
    encoder = studied.encoder()
    long = "the sum of two arrays " * 40
    (bare,) = encoder.tokenizer([long])
    assert len(bare) == settings["max_length"]
    for template in prompt_templates("moee").values():
        (row,) = worded(encoder, template).tokenizer([long])
        text = [i for i, role in zip(row.ids, row.roles, strict=True) if role == 2]
        assert text == bare.ids[:-1], template.name
        assert row.ids[-1] != bare.ids[-1], "a prompt's last token is its own, not EOS"


def test_a_prompt_longer_than_the_positions_is_refused(small_moe, tmp_path):
    (studied,), _, _ = asked(small_moe, tmp_path, "max_length=120")
    with pytest.raises(UserError, match=r"adds \d+ tokens to max_length=120, which is more than the 128 positions"):
        worded(studied.encoder(), prompt_templates("moee")["tone"])


def test_similarities_are_those_of_each_pooler_alone(moe):
    (studied,), texts, _ = moe
    templates = dict(list(prompt_templates("moee").items())[2:4])
    tasks = pair_tasks(list(texts.task_set.data.values()), 16, 0)
    (held,) = similarities(studied, templates, tasks, 0.5)
    for reading, words in {"HS": {"reading": "hidden"}, "RW": {"reading": "routing"}, "sum": {"alpha": 0.5}}.items():
        for k, template in enumerate(templates.values()):
            form = {"bare": template.query.bare, "instructed": template.query.bare}
            own = {"name": template.name, "query": form, "document": form, "eos": False}
            pooler = {**_moee(studied), **words}
            length = worded(studied.encoder(), template).max_length
            alone = untrained({**studied.config, "template": own, "pooler": pooler, "max_length": length})
            vectors = alone.encode(tasks[0].texts)
            np.testing.assert_allclose(held[reading][k], tasks[0].similarities(vectors), atol=1e-6)


def _moee(studied):
    from evaluation.readings import pooler_config

    return pooler_config("moee:sum", studied.config)


def test_the_answer(moe):
    encoders, texts, settings = moe
    found = answer(encoders, texts, settings)
    scores, stability = found.frames["prompts_scores"], found.frames["prompts_stability"]
    assert len(scores) == 9 * 3
    by_reading = scores.groupby("reading")["score"]
    for reading in ("HS", "RW", "sum"):
        own = stability[stability["reading"] == reading].set_index("statistic")
        assert own.loc["mean", "value"] == pytest.approx(by_reading.mean()[reading])
        assert own.loc["spread", "value"] == pytest.approx(by_reading.std()[reading])
        assert own.loc["agreement", "low"] < own.loc["agreement", "value"] < own.loc["agreement", "high"]
    assert [d.name for d in found.drawings] == ["prompts_scores", "prompts_agreement_0"]
    text = markdown(found)
    assert "RW minus HS" in text
    assert "16 pairs of 1 task of benchmark docs_smoke" in text
    assert "untrained, causal: " in text


def test_dense_decoders_are_not_asked(small_model, tmp_path):
    assert answer(*asked(small_model, tmp_path, *WORDS)) is None
