"""Several poolers from one forward pass: each gets what it would get alone, bit for bit."""

import numpy as np
import pytest
import torch
from transformers import AutoModel

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import load_readings, untrained
from poolers.shared.registry import build_pooler

TEXTS = [
    "the sum of two arrays",
    "a new array is returned with the same shape",
    "type",
    "the shape and the type of the first argument is the same as that of the sum of the two arrays returned",
    "two arrays of the same shape",
]
NAMES = {
    "eos": ["pooler=eos"],
    "mean": ["pooler=mean"],
    "plain sum": ["pooler=weightedmean", "pooler.normalize=false"],
    "first": ["pooler=layer", "pooler.layer=0", "pooler.pooling=eos"],
    "second": ["pooler=layer", "pooler.layer=1", "pooler.pooling=weightedmean"],
    "last": ["pooler=layer", "pooler.layer=2", "pooler.pooling=mean"],
}


@pytest.fixture
def composed_as(small_model):
    """Compose evaluate.yaml on the small model: composed_as("bi", "mixed", "pooler=mean")."""

    def compose(attn, precision, *words) -> dict:
        usual = [f"attn={attn}", f"precision={precision}", f"model.path={small_model}", "max_length=48"]
        return plain(composed("evaluate", [*usual, "accelerator=cpu", "token_budget=32", *words]))

    return compose


@pytest.fixture
def loaded(composed_as):
    """Load the readings `names` of the base, with their configurations."""

    def load(attn="bi", precision="fp32", names=NAMES):
        configs = {name: composed_as(attn, precision, *NAMES[name]) for name in names}
        poolers = {name: cfg["pooler"] for name, cfg in configs.items()}
        return load_readings(composed_as(attn, precision), None, poolers), configs

    return load


@pytest.mark.parametrize("attn", ["causal", "bi"])
@pytest.mark.parametrize("precision", ["fp32", "mixed"])
@pytest.mark.parametrize("instruction", ["", "find it"])
def test_each_reading_is_its_pooler_run_alone(loaded, attn, precision, instruction):
    readings, configs = loaded(attn, precision)
    parts = list(readings.parts(TEXTS, instruction))
    assert len(parts) > 1
    for name, cfg in configs.items():
        alone = untrained(cfg)
        assert readings.fingerprints[name] == alone.fingerprint
        for (ours, vectors), (theirs, wanted) in zip(parts, alone.parts(TEXTS, instruction), strict=True):
            assert ours == theirs
            np.testing.assert_array_equal(vectors[name], wanted)


def test_the_backbone_runs_once_a_batch(loaded):
    readings, _ = loaded()
    calls = []
    readings.text_encoder.encoder.backbone.register_forward_hook(lambda *_: calls.append(1))
    assert len(list(readings.parts(TEXTS))) == len(calls) > 1
    assert readings.text_encoder.meter.texts == len(TEXTS)


@pytest.mark.parametrize("names", [["eos", "mean"], ["first"], ["eos", "first"]])
def test_any_mixture_of_what_is_consumed(loaded, names):
    readings, configs = loaded(names=names)
    for indices, vectors in readings.parts(TEXTS):
        assert list(vectors) == names
        for name in names:
            wanted = {tuple(i): v for i, v in untrained(configs[name]).parts(TEXTS)}[tuple(indices)]
            np.testing.assert_array_equal(vectors[name], wanted)


@pytest.mark.parametrize("pooling", ["eos", "mean", "weightedmean"])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_layer_is_that_of_transformers(composed_as, small_model, layer, pooling):
    """Reference: AutoModel with output_hidden_states on one unpadded text, pooled by hand."""
    cfg = composed_as("causal", "fp32", "pooler=layer", f"pooler.layer={layer}", f"pooler.pooling={pooling}")
    encoder = untrained(cfg)
    model = AutoModel.from_pretrained(small_model).eval()
    for text, vector in zip(TEXTS, encoder.encode(TEXTS), strict=True):
        (row,) = encoder.tokenizer([text])
        with torch.no_grad():
            hidden = model(torch.tensor([row.ids]), output_hidden_states=True).hidden_states[1:][layer][0].numpy()
        n = np.arange(1, len(row) + 1)
        weights = {"eos": n == len(row), "mean": n > 0, "weightedmean": n}[pooling].astype(float)
        wanted = weights @ hidden / weights.sum()
        np.testing.assert_allclose(vector, wanted / np.linalg.norm(wanted), atol=2e-6)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"layer": 3}, "pooler.layer is 3; this model's layers are 0 to 2"),
        ({"layer": -1}, "pooler.layer=-1 must be a whole number, at least 0"),
        ({"layer": "all"}, "pooler.layer=all must be a whole number"),
        ({"pooling": "means"}, "pooler.pooling=means must be one of eos, mean"),
    ],
)
def test_a_layer_that_is_not_there_is_refused(changes, said):
    config = {"name": "layer", "layer": 0, "pooling": "mean", **changes}
    with pytest.raises(UserError, match=said):
        build_pooler(config, 32, 3, 0)
