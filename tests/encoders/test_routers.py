"""Routers of every MoE family: what is handed to a pooler is what transformers itself gives, padding left out."""

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import set_attention
from encoders.backbone import load_backbone
from encoders.encoder import Encoder
from encoders.routers import experts_of, routers
from poolers.shared.base import PAD
from poolers.shared.registry import build_pooler
from tests.encoders.test_families import batch_of
from tests.families import EXPERTS, SIZES

DEEPSEEK = {
    **{"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1},
    **{"num_experts_per_tok": 2, "kv_lora_rank": 8, "q_lora_rank": None, "num_key_value_heads": 4},
    **{"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8},
}
FAMILIES = dict.fromkeys(("olmoe", "mixtral", "qwen2_moe", "qwen3_moe"), EXPERTS) | {
    "deepseek_v2": {**DEEPSEEK, "topk_method": "greedy"},
    "glm4_moe": {k: v for k, v in DEEPSEEK.items() if "rank" not in k},
}
LENGTHS = [5, 12, 2, 7]


class Seen(nn.Module):
    """A pooler that keeps what it is given."""

    consumes = "routers"
    layers = ()
    reads_packed = False

    def reduce_routing(self, layer, logits, tokens):
        return logits


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request, tmp_path_factory):
    torch.manual_seed(0)
    config = AutoConfig.for_model(request.param, **{**SIZES, **FAMILIES[request.param]})
    path = tmp_path_factory.mktemp(request.param)
    AutoModel.from_config(config).save_pretrained(path)
    return path


def loaded(folder, attn, kernel):
    cfg = plain(composed("train", [f"attn={attn}", "pooler=moee", f"model.attn_implementation={kernel}"]))
    cfg["model"]["path"] = str(folder)
    backbone = load_backbone(cfg["model"], torch.float32)
    set_attention(backbone, pattern_of(cfg["attn"]))
    return backbone


def batch():
    return batch_of(torch.randint(3, 160, (4, 12), generator=torch.Generator().manual_seed(1)), LENGTHS, 12)


@torch.no_grad()
def routing(backbone):
    return Encoder(backbone, Seen(), normalize=True, compute=torch.float32).eval().states(batch()).routing


@pytest.mark.parametrize("attn", ["causal", "bi"])
def test_equal_to_output_router_logits(folder, attn):
    backbone, b = loaded(folder, attn, "eager"), batch()
    with torch.no_grad():
        theirs = backbone(
            input_ids=b.input_ids,
            attention_mask=b.attention_mask,
            position_ids=b.position_ids,
            use_cache=False,
            output_router_logits=True,
        ).router_logits
    ours = routing(backbone)
    assert len(ours) == len(theirs) == len(experts_of(backbone)) > 1
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == (4, 12, 4)
        assert torch.equal(one.flatten(0, 1), other.float().view(-1, 4))


def test_one_row_of_texts_gives_the_same(folder):
    if folder.name.startswith(("deepseek", "glm4")):  # outside encoders.backbone.ROWS
        with pytest.raises(UserError, match="not made for"):
            loaded(folder, "causal", "unpadded")
        return
    row, real = routing(loaded(folder, "causal", "unpadded")), batch().view.real
    for one, other in zip(row, routing(loaded(folder, "causal", "eager")), strict=True):
        assert (one[real] - other[real]).abs().max() < 5e-6 * other.abs().max()


def test_a_dense_decoder_has_no_experts():
    assert experts_of(AutoModel.from_config(AutoConfig.for_model("llama", **SIZES))) == []


def test_under_gradient_checkpointing_each_router_is_heard_once(folder):
    """In training mode a checkpointed layer runs twice; loss and gradients are those without."""
    results = []
    for checkpointed in (False, True):
        backbone = loaded(folder, "bi", "eager").train().requires_grad_(True)
        if checkpointed:
            backbone.gradient_checkpointing_enable({"use_reentrant": False})
        pooler = build_pooler(plain(composed("train", ["pooler=moee"]))["pooler"], 32, 3, 0, experts_of(backbone))
        encoder = Encoder(backbone, pooler, normalize=True, compute=torch.float32).train()
        b = batch()
        vectors = encoder(b)
        (vectors @ vectors.T)[b.roles[:, 0] != PAD].square().sum().backward()
        results.append((vectors.detach(), [r.weight.grad for r in routers(backbone)]))
    (one, grads), (other, again) = results
    assert torch.equal(one, other)
    assert all(torch.equal(a, b) and a.any() for a, b in zip(grads, again, strict=True))
