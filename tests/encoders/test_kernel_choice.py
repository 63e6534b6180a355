"""The kernel that `auto` takes computes the family's own attention, on a machine with a GPU too."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from cli.compose import composed, plain
from encoders.attention.switch import kernel_of
from encoders.backbone import empty_backbone, load_backbone, load_config
from tests.families import EXPERTS, SIZES

# sdpa is no function for these: their scores are soft-capped, or a sink stands beside the keys
OWN_SOFTMAX = {
    "gemma2": {"query_pre_attn_scalar": 8, "attn_logit_softcapping": 1.0, "sliding_window": 64},
    "gpt_oss": {**EXPERTS, "sliding_window": 64, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
}


@pytest.fixture
def model(request, tmp_path, monkeypatch):
    """The keys below `model` of a random decoder, on a machine that says it has a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    torch.manual_seed(0)
    config = AutoConfig.for_model(request.param, **{**SIZES, **OWN_SOFTMAX.get(request.param, {})})
    AutoModel.from_config(config).save_pretrained(tmp_path)
    cfg = plain(composed("train", ["pooler=mean", "attn=causal"]))["model"]
    return {**cfg, "path": str(tmp_path)}


@torch.no_grad()
@pytest.mark.parametrize("model", OWN_SOFTMAX, indirect=True)
def test_a_softmax_of_its_own_is_not_left_to_sdpa(model):
    """States under `auto` are those of the family's own code, and its caps and sinks are seen in them."""
    ids = torch.arange(3, 15)[None]
    backbone, own = load_backbone(model, torch.float32), AutoModel.from_pretrained(model["path"])
    assert backbone.config._attn_implementation == "eager"
    states = backbone(input_ids=ids, use_cache=False).last_hidden_state
    assert torch.equal(states, own(input_ids=ids, use_cache=False).last_hidden_state)
    if own.config.model_type == "gemma2":
        own.config.attn_logit_softcapping = None
    for module in own.modules():
        if hasattr(module, "attn_logit_softcapping"):
            module.attn_logit_softcapping = None
        if hasattr(module, "sinks"):
            module.sinks.fill_(-torch.inf)
    assert (own(input_ids=ids, use_cache=False).last_hidden_state - states).abs().max() > 1e-2, "a difference to miss"
    assert empty_backbone(model, torch.float32).config._attn_implementation == "eager"


@pytest.mark.parametrize(("model", "kernel"), [("llama", "unpadded"), ("gemma3_text", "sdpa")], indirect=["model"])
def test_the_others_keep_their_fast_kernel(model, kernel):
    assert kernel_of(model, load_config(model)) == kernel
