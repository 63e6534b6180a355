"""Routers of every MoE family: what is handed to a pooler is what transformers itself gives, padding left out."""

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.backbone import load_backbone
from encoders.encoder import Encoder, experts_of, routers
from encoders.loading import build_encoder
from encoders.precision import PRECISIONS
from poolers.shared.base import PAD
from poolers.shared.registry import build_pooler
from tests.encoders import test_families
from tests.encoders.test_checkpoint import model_of
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
    return test_families.loaded(folder, attn, f"model.attn_implementation={kernel}")[0]


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


@pytest.mark.parametrize("family", FAMILIES)
def test_products_of_experts_are_those_of_linear_layers_under_autocast(tmp_path, family):
    """transformers' loop over experts calls F.linear, which autocast rounds: output and gradients are the loop's."""
    torch.manual_seed(0)
    settings = {**SIZES, **FAMILIES[family]}
    AutoModel.from_config(AutoConfig.for_model(family, **settings)).save_pretrained(tmp_path)
    backbone = load_backbone(model_of(tmp_path), torch.float32)
    experts = next(m for m in backbone.modules() if hasattr(m, "gate_up_proj"))
    chosen, weights = torch.randn(40, 4).topk(2).indices, torch.rand(40, 2)
    hidden = torch.randn(40, 32)
    ours = backbone.config._experts_implementation
    results = []
    for way, autocast in ((ours, True), ("eager", True), ("eager", False)):
        backbone.config._experts_implementation = way
        x, w = hidden.clone().requires_grad_(), weights.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = experts(x, chosen, w)
        assert out.dtype is torch.float32
        out.square().sum().backward()
        results.append((out.detach(), x.grad, w.grad))
    for cast, loop, exact in zip(*results, strict=True):
        assert (cast - loop).norm() < 0.3 * (loop - exact).norm()
        assert (loop - exact).norm() > 1e-3 * exact.norm()


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("family", [*FAMILIES, "deepseek_v3", "dots1"])
def test_routers_that_are_sigmoids_are_refused(compose_cell, tmp_path, small_model, family, norm):
    """The softmax of a sigmoid router's logits is nothing that the decoder computes; hidden states may be read."""
    torch.manual_seed(0)
    settings = {**SIZES, **FAMILIES.get(family, DEEPSEEK), "norm_topk_prob": norm}
    settings |= {"num_key_value_heads": 4} if family == "dots1" else {}
    AutoModel.from_config(AutoConfig.for_model(family, **settings)).save_pretrained(tmp_path)
    words = [f"model.path={tmp_path}", "model.attn_implementation=eager"]
    reads = compose_cell("moee", "bi", "pooler.variant=routing", *words)
    if family in ("glm4_moe", "deepseek_v3", "dots1"):
        with pytest.raises(UserError, match="do not weigh experts by a softmax of their logits"):
            build_encoder(reads, PRECISIONS["fp32"], torch.device("cpu"))
    else:
        for precision in PRECISIONS.values():
            build_encoder(reads, precision, torch.device("cpu"))
    build_encoder(compose_cell("mean", "bi", *words), PRECISIONS["fp32"], torch.device("cpu"))
