"""Several poolers from one forward pass, of a dense decoder and of a mixture: each gets what it would get alone."""

import numpy as np
import pytest
import torch
from transformers import AutoModel

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import untrained
from encoders.variants import load_variants
from tests.contract.conftest import TEXTS

DENSE = {
    "eos": ["pooler=eos"],
    "mean": ["pooler=mean"],
    "plain sum": ["pooler=weightedmean"],
    "first": ["pooler=layer", "pooler.layer=0", "pooler.pooling=eos"],
    "second": ["pooler=layer", "pooler.layer=1", "pooler.pooling=weightedmean"],
    "last": ["pooler=layer", "pooler.layer=2", "pooler.pooling=mean"],
}
MIXTURE = {
    "mean": ["pooler=mean"],
    "first": ["pooler=layer", "pooler.layer=0", "pooler.pooling=eos"],
    "sum": ["pooler=moee"],
    "routing": ["pooler=moee", "pooler.variant=routing", "pooler.routing_tokens=mean"],
    "hidden": ["pooler=moee", "pooler.variant=hidden", "pooler.hidden_tokens=mean", "pooler.hidden_layers=all"],
    "averaged": ["pooler=moee", "pooler.variant=concat", "pooler.hidden_layers=mean"],
}
SETS = [DENSE, {"first": DENSE["first"]}, MIXTURE, {"routing": MIXTURE["routing"]}]


@pytest.fixture
def composed_as(small_model, small_moe):
    """Compose evaluate.yaml on the small model: composed_as("bi", "pooler=mean"); on the mixture with `moe`."""

    def compose(attn, *words, moe=False) -> dict:
        usual = [f"attn={attn}", "precision=fp32", f"model.path={small_moe if moe else small_model}", "max_length=48"]
        return plain(composed("evaluate", [*usual, "accelerator=cpu", "token_budget=32", *words]))

    return compose


WAYS = [("causal", ["precision=fp32"]), ("bi", ["precision=mixed", "normalize=false"])]


@pytest.mark.parametrize(("attn", "words"), WAYS, ids=str)
@pytest.mark.parametrize("names", SETS, ids=" ".join)
def test_each_variant_is_its_pooler_run_alone(composed_as, attn, words, names):
    moe = any("pooler=moee" in of_name for of_name in names.values())
    configs = {name: composed_as(attn, *words, *of_name, moe=moe) for name, of_name in names.items()}
    poolers = {name: cfg["pooler"] for name, cfg in configs.items()}
    variants, ran = load_variants(composed_as(attn, *words, moe=moe), None, poolers), []
    variants.text_encoder.encoder.backbone.register_forward_hook(lambda *_: ran.append(1))
    parts = list(variants.parts(TEXTS, "find it"))
    assert len(parts) == len(ran) > 1, "one forward pass a batch"
    for name, cfg in configs.items():
        alone = untrained(cfg)
        assert variants.fingerprints[name] == alone.fingerprint
        for (ours, vectors), (theirs, wanted) in zip(parts, alone.parts(TEXTS, "find it"), strict=True):
            assert ours == theirs
            np.testing.assert_array_equal(vectors[name], wanted)


@pytest.mark.parametrize("pooling", ["eos", "mean", "weightedmean"])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_layer_is_that_of_transformers(composed_as, small_model, layer, pooling):
    """Reference: AutoModel with output_hidden_states on one unpadded text, pooled by hand."""
    cfg = composed_as("causal", "pooler=layer", f"pooler.layer={layer}", f"pooler.pooling={pooling}")
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
    ("words", "moe", "said"),
    [
        (MIXTURE["routing"], False, "this decoder is dense"),
        ([*MIXTURE["sum"], "reference_fault.standardise=corpus"], True, "would be standardised by statistics"),
    ],
)
def test_what_cannot_be_read_is_refused(composed_as, words, moe, said):
    with pytest.raises(UserError, match=said):
        load_variants(composed_as("bi", moe=moe), None, {"it": composed_as("bi", *words, moe=moe)["pooler"]})
