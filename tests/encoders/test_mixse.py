"""A mixture of LoRA experts against sums written out token by token, in float64; what is saved, merged and refused."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from encoders.adapter import add_adapter, expert_names
from encoders.loading import build_encoder, build_tokenizer
from encoders.mixse import Mixing
from encoders.precision import PRECISIONS
from training.large_batch import ChunkPlan, LargeBatch

CPU = torch.device("cpu")
EXPERTS = 3
PLAIN = Mixing(EXPERTS, 1, "shared", always=False)
IDS = torch.randint(3, 300, (2, 7), generator=torch.Generator().manual_seed(0))


def mixed(compose_cell, mixing, trains="experts", attn="bi"):
    """An encoder in float64 with experts that are awake and a router that tells tokens apart."""
    words = [f"adapter.{key}={value}" for key, value in vars(mixing).items()]
    words = ["null".join(w.rsplit("None", 1)) if w.endswith("None") else w for w in words]
    words += ["adapter=mixse", f"adapter.trains={trains}", "lora.dropout=0", "model.attn_implementation=sdpa"]
    cfg = compose_cell("mean", attn, *words)
    encoder = build_encoder(cfg, PRECISIONS["fp32"], CPU)
    adapted = add_adapter(encoder.backbone, cfg, seed=1)
    draw = torch.Generator().manual_seed(2)
    for name, p in encoder.backbone.named_parameters():
        if "lora_B" in name:
            p.data = 0.3 * torch.randn(p.shape, generator=draw)
        if name == "mixture.router":
            p.data *= 50
    for module in (m for m in encoder.modules() if hasattr(m, "variance_epsilon")):  # the family's own is float32
        module.forward = lambda x, m=module: m.weight * x * (x.square().mean(-1, True) + m.variance_epsilon).rsqrt()
    return encoder.double(), adapted, cfg


def literal(x, layer, weights):
    """W x + b + sum over experts of a_i s B_i A_i x, expert by expert and token by token."""
    rows = []
    for token, alphas in zip(x.flatten(0, -2), weights.expand(*x.shape[:-1], -1).flatten(0, -2), strict=True):
        y = F.linear(token, layer.weight, layer.bias)
        for name, alpha in zip(expert_names(PLAIN), alphas, strict=True):
            y = y + alpha * layer.scaling[name] * layer.lora_B[name].weight @ (layer.lora_A[name].weight @ token)
        rows.append(y)
    return torch.stack(rows).view(*x.shape[:-1], -1)


MIXINGS = [
    PLAIN,
    replace(PLAIN, top_k=2),
    replace(PLAIN, top_k=None),
    replace(PLAIN, router="layer"),
    replace(PLAIN, router="random"),
    replace(PLAIN, router="uniform", top_k=None),
    replace(PLAIN, always=True),
]


@pytest.mark.parametrize("mixing", MIXINGS, ids=lambda m: f"{m.router}-{m.top_k}-{m.always}")
def test_layers_are_the_sum_of_experts_with_the_weights_of_their_sublayer_s_input(compose_cell, mixing):
    encoder, _, _ = mixed(compose_cell, mixing)
    sublayers, linear = {}, {}
    for number, layer in enumerate(encoder.backbone.layers):
        for module in (layer.self_attn, layer.mlp):
            module.register_forward_pre_hook(
                lambda _m, args, kwargs, key=(number, module): sublayers.update(
                    {key: args[0] if args else kwargs["hidden_states"]}
                ),
                with_kwargs=True,
            )
            for m in (m for m in module.modules() if hasattr(m, "lora_A")):
                m.register_forward_hook(
                    lambda m, args, out, key=(number, module): linear.update({m: (key, args[0], out)})
                )
    encoder.backbone(input_ids=IDS, use_cache=False)
    assert len(linear) == 7 * len(encoder.backbone.layers)
    router, chosen = encoder.backbone.mixture.router, set()
    for m, (key, x, out) in linear.items():
        if mixing.router == "uniform":
            weights = torch.full((EXPERTS,), 1 / EXPERTS, dtype=torch.float64)
        else:
            theta = router[key[0] if mixing.router == "layer" else 0]
            weights = by_token(sublayers[key], theta, mixing.top_k)
            if mixing.always:
                weights = torch.cat([torch.ones_like(weights[..., :1]), weights], dim=-1)
            chosen |= set(weights.argmax(dim=-1).flatten().tolist())
        assert torch.allclose(out, literal(x, m, weights), atol=1e-10)
    assert mixing.router == "uniform" or mixing.always or len(chosen) == EXPERTS, "one expert takes all tokens"


def by_token(x, theta, top_k):
    """Softmax over experts, all but the k largest set to zero: by sorting, one token after another."""
    weights = torch.zeros(*x.shape[:-1], len(theta), dtype=x.dtype)
    for place in torch.cartesian_prod(*map(torch.arange, x.shape[:-1])):
        index = tuple(place.tolist())
        odds = torch.exp(theta @ x[index])
        for i in sorted(range(len(theta)), key=lambda i: -odds[i])[: top_k or len(theta)]:
            weights[(*index, i)] = odds[i] / odds.sum()
    return weights


@pytest.mark.parametrize("trains", ["router", "experts"])
def test_gradients_against_finite_differences(compose_cell, trains):
    """Of a router that is shared by all layers, and of one expert's matrices where these are trained."""
    encoder, _, _ = mixed(compose_cell, replace(PLAIN, top_k=2), trains)
    backbone = encoder.backbone

    def loss():
        return backbone(input_ids=IDS, use_cache=False).last_hidden_state.square()[..., ::3].mean()

    loss().backward()
    trained = {name: p for name, p in backbone.named_parameters() if p.requires_grad}
    assert "mixture.router" in trained
    assert (len(trained) > 1) == (trains == "experts")
    probed = [n for n in trained if n == "mixture.router" or "layers.1.mlp.up_proj.lora_" in n]
    assert len(probed) == (1 if trains == "router" else 1 + 2 * EXPERTS)
    for name in probed:
        flat, grad = trained[name].data.view(-1), trained[name].grad.view(-1)
        for place in grad.abs().topk(3).indices:
            at, step, values = flat[place].item(), 1e-6, []
            for sign in (1, -1):
                flat[place] = at + sign * step
                with torch.no_grad():
                    values.append(loss())
            flat[place] = at
            assert float((values[0] - values[1]) / (2 * step)) == pytest.approx(float(grad[place]), rel=1e-5), name


def test_one_expert_of_weight_one_is_one_lora(compose_cell):
    """The weights are the softmax's: an only expert has 1, and the adapter is plain LoRA with the same draws."""
    one, _, cfg = mixed(compose_cell, replace(PLAIN, experts=1))
    lora = build_encoder(cfg, PRECISIONS["fp32"], CPU)
    add_adapter(lora.backbone, {**cfg, "adapter": {"name": "lora"}}, seed=1)
    for name, p in one.backbone.named_parameters():
        if "lora_A" in name:
            assert torch.equal(p.float(), lora.backbone.get_parameter(name.replace("expert0", "default")))
    lora.double()
    for name, p in lora.backbone.named_parameters():
        if "lora_B" in name:
            p.data = one.backbone.get_parameter(name.replace("default", "expert0")).data
    batch = build_tokenizer(cfg, 128).batch(build_tokenizer(cfg, 128)(["the sum of two arrays", "type"]))
    assert torch.allclose(one.eval()(batch), lora.eval()(batch), atol=1e-7)


def test_balance_is_the_loss_of_each_text_alone(compose_cell):
    """The gradient that training adds, in chunks of any size, against a loop over texts, sublayers and tokens."""
    weight, texts = 0.7, ["the sum of two arrays", "type", "a new array with the same shape and type", "two arrays"]
    encoder, _, cfg = mixed(compose_cell, replace(PLAIN, top_k=2), "router")
    mixture, tokenizer = encoder.backbone.mixture, build_tokenizer(cfg, 128)
    rows = tokenizer.pairs([("", text) for text in texts])

    def gradient(balance, plan):
        mixture.balance, mixture.router.grad = balance, None
        LargeBatch(encoder.train(), tokenizer, plan, 0).backward(rows, lambda v: v[:, 0].square().sum(), 0)
        return mixture.router.grad

    plans = [ChunkPlan(4096, n, gradcache=cached) for n, cached in ((None, False), (2, False), (1, True))]
    added = [gradient(weight, plan) - gradient(0.0, plan) for plan in plans]

    states = []
    for layer in encoder.backbone.layers:
        for module in (layer.self_attn, layer.mlp):
            hook = lambda _m, args, kwargs: states.append(args[0] if args else kwargs["hidden_states"])  # noqa: E731
            module.register_forward_pre_hook(hook, with_kwargs=True)
    total = 0.0
    for row in rows:
        states.clear()
        encoder(tokenizer.batch([row]))
        for x in states:
            weights = (x[0] @ mixture.router[0].T).softmax(dim=-1)
            chosen = [sorted(range(EXPERTS), key=lambda i, w=w: -w[i])[:2] for w in weights.tolist()]
            for i in range(EXPERTS):
                share = sum(i in two for two in chosen) / (2 * len(chosen))
                total = total + EXPERTS * share * weights[:, i].mean() / (len(rows) * 6)
    (wanted,) = torch.autograd.grad(weight * total, mixture.router)
    assert wanted.abs().max() > 1e-3
    for found in added:
        assert torch.allclose(found, wanted, atol=1e-6 * float(wanted.abs().max()))
