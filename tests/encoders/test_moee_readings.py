"""Readings of routers beside others, from one forward pass: what each pooler gives alone, bit for bit."""

import numpy as np
import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import load_readings, untrained
from tests.encoders.test_readings import TEXTS

NAMES = {
    "mean": ["pooler=mean"],
    "first": ["pooler=layer", "pooler.layer=0", "pooler.pooling=eos"],
    "sum": ["pooler=moee"],
    "routing": ["pooler=moee", "pooler.reading=routing", "pooler.routing_tokens=mean"],
    "hidden": ["pooler=moee", "pooler.reading=hidden", "pooler.hidden_tokens=mean", "pooler.hidden_layers=all"],
    "averaged": ["pooler=moee", "pooler.reading=concat", "pooler.hidden_layers=mean"],
}


@pytest.fixture
def composed_as(small_moe):
    def compose(attn, *words) -> dict:
        usual = [f"attn={attn}", "precision=fp32", f"model.path={small_moe}", "max_length=48"]
        return plain(composed("evaluate", [*usual, "accelerator=cpu", "token_budget=64", *words]))

    return compose


def shared(composed_as, attn, names, *words):
    poolers = {name: composed_as(attn, *NAMES[name], *words)["pooler"] for name in names}
    return load_readings(composed_as(attn), None, poolers)


@pytest.mark.parametrize("attn", ["causal", "bi"])
@pytest.mark.parametrize("names", [list(NAMES), ["routing"], ["mean", "routing"], ["hidden", "sum"]])
def test_each_reading_is_its_pooler_run_alone(composed_as, attn, names):
    readings = shared(composed_as, attn, names)
    ran = []
    readings.text_encoder.encoder.backbone.register_forward_hook(lambda *_: ran.append(1))
    parts = list(readings.parts(TEXTS, "find it"))
    assert len(parts) == len(ran) > 1, "one forward pass a batch"
    for name in names:
        alone = untrained(composed_as(attn, *NAMES[name]))
        assert readings.fingerprints[name] == alone.fingerprint
        for (ours, vectors), (theirs, wanted) in zip(parts, alone.parts(TEXTS, "find it"), strict=True):
            assert ours == theirs
            np.testing.assert_array_equal(vectors[name], wanted)


def test_routers_of_a_dense_decoder_are_refused(composed_as, small_model):
    pooler = composed_as("bi", *NAMES["routing"])["pooler"]
    with pytest.raises(UserError, match="this decoder is dense"):
        load_readings(composed_as("bi", f"model.path={small_model}"), None, {"routing": pooler})


def test_readings_without_their_statistics_are_refused(composed_as):
    with pytest.raises(UserError, match="reading sum would be standardised by statistics"):
        shared(composed_as, "bi", ["sum"], "token_choice.standardise=corpus")
