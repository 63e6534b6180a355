"""Compiled layers are the eager ones: loss, gradients, dropout's replay, and texts that do not touch one another."""

from dataclasses import replace

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from cli.errors import UserError
from encoders import adapter
from encoders.adapter import add_lora
from encoders.compiled import compile_layers, elementwise
from encoders.loading import build_encoder, build_tokenizer
from encoders.precision import PRECISIONS
from training.large_batch import ChunkPlan, LargeBatch

CPU = torch.device("cpu")
TEXTS = ["the sum of two arrays", "type", "a new array of the same shape and type as its first argument", "of two"]


def work(compose_cell, compiled, *words):
    """A batch of four texts in chunks of two, LoRA moved off zero; not compiled: PEFT's own layers."""
    cfg = compose_cell("multilayer", "bi", f"compile={compiled}", "lora.dropout=0.3", *words)
    encoder = build_encoder(cfg, PRECISIONS["fp32"], CPU)
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    draw = torch.Generator().manual_seed(1)
    for name, weight in encoder.named_parameters():
        if "lora_B" in name:
            weight.data = 0.1 * torch.randn(weight.shape, generator=draw)
    return LargeBatch(encoder.train(), build_tokenizer(cfg, 128), ChunkPlan(4096, 2, False), seed=0)


def gradients(batch, step):
    """Loss and gradients of a step, one after another."""
    weights = torch.arange(4 * batch.encoder.pooler.embedding_dim).view(4, -1).sin()
    loss = batch.backward(batch.tokenizer(TEXTS), lambda vectors: (vectors * weights).sum(), step)
    flat = torch.cat([p.grad.flatten() for p in batch.encoder.parameters() if p.grad is not None])
    batch.encoder.zero_grad()
    return torch.cat([loss[None], flat])


def apart(one, other):
    return float((one - other).norm() / one.norm())


@pytest.mark.slow  # a minute of compilation
def test_compiled_layers_are_the_eager_ones(compose_cell, monkeypatch):
    monkeypatch.setattr(adapter, "fuse_lora", lambda *_: 0)
    monkeypatch.setattr(torch._inductor.config, "fallback_random", True)  # compiled code would draw other masks
    eager, compiled = work(compose_cell, "never"), work(compose_cell, "always")
    assert (elementwise(eager.encoder.backbone), elementwise(compiled.encoder.backbone)) == ("torch", "torch.compile")
    first = gradients(compiled, step=3)
    assert apart(gradients(eager, step=3), first) < 1e-5
    assert torch.equal(gradients(compiled, step=3), first)
    assert apart(gradients(compiled, step=4), first) > 1e-2
    compiled.plan = replace(compiled.plan, gradcache=True)  # whose second pass replays the first
    assert apart(gradients(compiled, step=3), first) < 1e-5
    rows = eager.tokenizer(TEXTS)
    vectors = compiled.vectors(rows, None)
    assert torch.allclose(eager.vectors(rows, None), vectors, atol=1e-5)
    alone = torch.cat([compiled.vectors([row], None) for row in rows])
    assert torch.allclose(alone, vectors, atol=1e-5), "a vector depends on batch mates"


def test_each_encoder_of_a_process_is_compiled(compose_cell, monkeypatch):
    counter, real = CompileCounter(), torch.compile
    monkeypatch.setattr(torch, "compile", lambda layer, **how: real(layer, backend=counter, **how))
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 3)  # what one encoder needs
    for rank in (1, 2):
        before, batch = counter.frame_count, work(compose_cell, "always", f"lora.r={rank}")
        gradients(batch, step=3)
        batch.vectors(batch.tokenizer(TEXTS), None)
        assert counter.frame_count > before, f"the layers of rank {rank} ran eagerly"


def test_what_cannot_be_compiled_is_refused_or_left(compose_cell):
    cfg = compose_cell("moee", "bi")
    backbone = build_encoder(cfg, PRECISIONS["fp32"], CPU).backbone
    compile_layers(backbone, "auto")
    assert elementwise(backbone) == "torch"
    with pytest.raises(UserError, match="compile=always is made for dense decoders"):
        compile_layers(backbone, "always")
