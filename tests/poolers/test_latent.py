"""Latent attention against a dense computation in float64 that shares no code with it, and its sizes."""

import math

import pytest
import torch

from cli.compose import composed, plain
from poolers.shared.base import EOS, INSTRUCTION, PAD, TEXT, TokenView
from poolers.shared.cross_attention import head_parameters
from poolers.shared.registry import build_pooler
from tests.poolers.test_poolers import ROLES, D, L, randomise, states


def latent(*words, width=D):
    cfg = plain(composed("train", ["pooler=latent", *words]))["pooler"]
    return build_pooler(cfg, width, L, seed=0).eval()


def normed(x, norm):
    mean, var = x.mean(dim=-1, keepdim=True), x.var(dim=-1, keepdim=True, unbiased=False)
    return (x - mean) / (var + 1e-5).sqrt() * norm.weight.detach().double() + norm.bias.detach().double()


def dense(pooler, hidden):
    """[n, D] float64: each of n tokens by itself, every head as one matrix over all latents."""
    weights = {n: p.detach().double() for n, p in pooler.named_parameters()}
    z = normed(weights["latents"], pooler.norm_latents)
    out = []
    for h in hidden.double():
        x, read = normed(h, pooler.norm_tokens), []
        for head in range(pooler.num_heads):
            rows = slice(head * pooler.head_dim, (head + 1) * pooler.head_dim)
            q, k, v = (weights[f"{n}.weight"][rows] for n in ("query", "key", "value"))
            scores = [float((k @ one) @ (q @ x)) / math.sqrt(pooler.head_dim) for one in z]
            top = sum(math.exp(s) for s in scores)
            read.append(sum(math.exp(s) / top * (v @ one) for s, one in zip(scores, z, strict=True)))
        y = h + weights["output.weight"] @ torch.cat(read)
        if pooler.mlp is not None:
            a, b = (weights["mlp.enter.weight"] @ normed(y, pooler.mlp.norm) + weights["mlp.enter.bias"]).chunk(2)
            gated = a * b * 0.5 * (1 + torch.erf(b / math.sqrt(2)))
            y = y + weights["mlp.leave.weight"] @ gated + weights["mlp.leave.bias"]
        out.append(y)
    return torch.stack(out)


@pytest.mark.parametrize("instruction", [False, True])
@pytest.mark.parametrize("mlp", [True, False])
def test_it_equals_the_dense_computation(mlp, instruction):
    words = [
        f"pooler.mlp={mlp}",
        f"pooler.pool_instruction={instruction}",
        "pooler.num_latents=5",
        "pooler.num_heads=2",
    ]
    pooler, hidden = randomise(latent(*words)), states()[-1]
    out = pooler(hidden, TokenView(ROLES))
    for b, roles in enumerate(ROLES):
        kept = (roles == TEXT) | (roles == EOS) | (instruction & (roles == INSTRUCTION))
        assert torch.allclose(out[b].double(), dense(pooler, hidden[b, kept]).mean(dim=0), atol=1e-5)


def test_padding_of_nan_reaches_no_gradient():
    pooler, hidden = randomise(latent()), states()[-1].requires_grad_(True)
    pooler(hidden, TokenView(ROLES)).square().sum().backward()
    assert all(torch.isfinite(p.grad).all() and p.grad.any() for p in pooler.parameters())
    assert not hidden.grad[ROLES == PAD].any()


def test_it_starts_as_the_plain_mean():
    hidden = states()[-1]
    out = latent()(hidden, TokenView(ROLES))
    own = [hidden[b, (r == TEXT) | (r == EOS)].mean(dim=0) for b, r in enumerate(ROLES)]
    assert torch.allclose(out, torch.stack(own), atol=1e-6)
    torch_start = latent("pooler.start=torch")(hidden, TokenView(ROLES))
    assert (torch_start - out).abs().max() > 0.01


def test_parameters_are_counted():
    def count(pooler):
        return sum(p.numel() for p in pooler.parameters())

    # D = 256: 32 latents; two norms; four square projections; MLP: norm, 256 -> 2 x 1024, 1024 -> 256
    wanted = 32 * 256 + 4 * 256 + 4 * 256**2 + 2 * 256 + (256 * 2048 + 2048) + (1024 * 256 + 256)
    assert count(latent(width=256)) == wanted == head_parameters(256, 32, 4, 64, 1024)
    assert abs(count(latent("pooler.match_params=50001", width=32)) - 50_001) <= 1.5 * 32 + 1
    published = ["head.num_latents=512", "pooler.num_heads=8", "pooler.head_dim=4096"]
    with torch.device("meta"):
        pooler = latent(*published, width=4096)
    assert pooler.latents.shape == (512, 4096)
    assert count(pooler) == 512 * 4096 + 6 * 4096 + 4 * 4096 * 32768 + (4096 * 32768 + 32768) + (16384 * 4096 + 4096)
