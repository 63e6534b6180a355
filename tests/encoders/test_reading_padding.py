"""Poolers that read states of padding, as published code does: the decoder then has them, as transformers."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers import AutoModel

from cli.errors import UserError
from encoders.loading import build_tokenizer, untrained
from encoders.variants import Variants, load_variants
from poolers.shared.registry import build_pooler
from records.files import stream_seed
from training.checks import check_sizes

TEXTS = ["the sum of two arrays is returned as a new array", "type", "a new array of the same shape"]
BY_POSITION, UNMASKED = "reference_fault.last_real=false", "reference_fault.mask_padding=false"
CELLS = [
    ("eos", "causal", BY_POSITION),
    ("eos", "bi", BY_POSITION),
    ("linear", "causal", BY_POSITION),
    ("multilayer", "causal", BY_POSITION),
    ("lastlayer", "causal", BY_POSITION, "pooler.tokens=last"),
    ("layer", "causal", BY_POSITION, "pooler.layer=1", "pooler.pooling=eos"),
    ("lastlayer", "bi", UNMASKED),
    ("multilayer", "bi", UNMASKED, "pooler.tokens=all"),
    ("lastlayer", "bi", "reference_fault=all"),
    ("multilayer", "causal", "reference_fault=all"),
]


def batch_of(cfg):
    tokenizer = build_tokenizer(cfg, 128)
    batch = tokenizer.batch(tokenizer(TEXTS))
    assert (batch.roles == 0).sum(dim=1).tolist()[1] > 3, "without padding nothing is shown"
    return batch


def by_transformers(cfg, batch):
    """[B, E] unit vectors: the stock model on the padded batch, all its states, the same pooler."""
    model = AutoModel.from_pretrained(cfg["model"]["path"], attn_implementation="eager").eval()
    model.config.is_causal = cfg["attn"]["name"] == "causal"
    pooler = build_pooler(cfg["pooler"], 32, 3, stream_seed(cfg["seed"], "head"))
    with torch.no_grad():
        positions = {"attention_mask": batch.attention_mask, "position_ids": batch.position_ids}
        layers = model(batch.input_ids, **positions, output_hidden_states=True).hidden_states[1:]
        if pooler.consumes == "last":
            return F.normalize(pooler(layers[-1], batch.view), dim=-1)
        return F.normalize(pooler([pooler.reduce(i, layers[i], batch.view) for i in pooler.layers], batch.view), dim=-1)


@pytest.mark.parametrize("cell", CELLS, ids=" ".join)
def test_auto_gives_the_states_that_transformers_has_at_padding(compose_cell, cell):
    cfg = compose_cell(*cell, "evaluation.autocast=null")
    assert cfg["model"]["attn_implementation"] == "auto"
    batch = batch_of(cfg)
    with torch.no_grad():
        vectors = untrained(cfg).encoder(batch)
    assert torch.allclose(vectors.norm(dim=1), torch.ones(len(TEXTS)))
    assert (vectors - by_transformers(cfg, batch)).abs().max() < 2e-6


def test_the_kernel_without_padding_is_refused(compose_cell):
    cfg = compose_cell(*CELLS[0], "model.attn_implementation=unpadded")
    with pytest.raises(UserError, match=r"unpadded has no states of padding.*Give auto, sdpa or eager"):
        untrained(cfg)
    with pytest.raises(UserError, match=r"unpadded has no states of padding.*Give auto, sdpa or eager"):
        check_sizes(cfg)


def test_one_reading_of_padding_gives_all_a_padded_decoder(compose_cell):
    """The checkpoint's own pooler, mean, reads no padding; another variant of it does."""
    cfg = compose_cell("mean", "causal", BY_POSITION)
    poolers = {name: compose_cell(name, "causal", BY_POSITION)["pooler"] for name in ("eos", "mean")}
    loaded = load_variants(cfg, None, poolers)
    ((_, found),) = loaded.parts(TEXTS)
    batch = batch_of(cfg)
    order = sorted(range(len(TEXTS)), key=lambda i: -int(batch.attention_mask[i].sum()))
    for name in poolers:
        wanted = by_transformers(compose_cell(name, "causal", BY_POSITION), batch).numpy()
        np.testing.assert_allclose(found[name], wanted[order], atol=2e-6)
    alone = load_variants(cfg, None, {"mean": poolers["mean"]})
    assert alone.text_encoder.settings["kernel"] == "unpadded"
    with pytest.raises(UserError, match="no states of padding"):
        Variants(alone.text_encoder.encoder, loaded.variants.poolers, normalize=True)
