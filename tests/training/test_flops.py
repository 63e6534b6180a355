"""FLOPs from shapes against torch's counter on the real step, and against the closed form of a linear layer."""

import pytest
import torch
from transformers import AutoModel, OlmoeConfig

from encoders.cost import flops
from encoders.loading import build_encoder, build_tokenizer
from encoders.lora import add_lora
from encoders.precision import PRECISIONS
from encoders.tokens import Tokens
from training.cost.flops import Work, training_flops
from training.large_batch import ChunkPlan, LargeBatch

TEXTS = [("", "the sum of two arrays " * k) for k in (1, 1, 2, 3, 5)]


@pytest.mark.parametrize(
    ("pooler", "words"),
    [
        ("eos", (True, "eager")),
        ("lastlayer", (False, "eager")),
        ("multilayer", (True, "eager")),
        ("eos", (True, "unpadded")),
        ("multilayer", (False, "unpadded")),
    ],
)
def test_the_count_is_that_of_the_real_step(compose_cell, monkeypatch, pooler, words):
    gradcache, kernel = words
    attn = "causal" if kernel == "unpadded" else "bi"  # the mean of packed states is a sum, which nobody counts
    cfg = compose_cell(pooler, attn, f"trainer.gradcache={gradcache}", f"model.attn_implementation={kernel}")
    encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    work = LargeBatch(encoder.train(), build_tokenizer(cfg, 128), ChunkPlan(64, None, gradcache), seed=0)
    longer = [("", "the sum of two arrays " * (5 + k)) for k in range(6)]
    rows = work.tokenizer.pairs(longer if kernel != "eager" else TEXTS)
    if kernel != "eager":  # one length: in attention, texts of like length are padded, which is not counted
        rows = [Tokens(r.ids[-20:], r.roles[-20:]) for r in rows]
    run, spared = work.work(rows)
    assert len(run) > 1
    assert spared == (run[-1:] if gradcache else []), "the graph of the last chunk is kept"
    with flops.flop_counter() as counter:
        work.backward(rows, lambda vectors: vectors.square().sum(), step=0)
    state = torch.get_rng_state()
    without = pooler == "multilayer" and kernel == "eager"  # other kernels are counted by eager, other heads are less
    for memory in (flops.REAL_BYTES, 0)[: 1 + without]:
        monkeypatch.setattr(flops, "REAL_BYTES", memory)
        assert training_flops(cfg).of(Work().plus(run), Work().plus(spared)) == counter.get_total_flops()
    assert torch.equal(torch.get_rng_state(), state), "counting draws nothing"


def test_a_forward_pass_costs_two_operations_for_each_weight_and_token(compose_cell):
    cfg = compose_cell("eos", "causal")
    encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
    base = sum(p.numel() for n, p in encoder.backbone.named_parameters() if p.dim() == 2 and "embed" not in n)
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    adapter = sum(p.numel() for p in encoder.parameters() if p.requires_grad)
    forward = training_flops(cfg).forward
    assert forward.token == 2 * (base + adapter)
    assert forward.square == 2 * 2 * 32 * 3  # two products of [T, T] with width 32 in three layers


@pytest.mark.parametrize("attn", ["bi", "bi_last"])
def test_attention_costs_the_same_whatever_it_sees(compose_cell, attn):
    """tests/contract rests on this, which counts the FLOPs of a pooler's settings once."""
    cfg = compose_cell("multilayer", attn)
    assert training_flops(cfg) == training_flops({**cfg, "attn": {"name": "causal"}})


def test_work_adds_up():
    work = Work().plus([[10, 10], [20]]).plus([[5, 5, 5]])
    assert work == Work(chunks=3, texts=6, tokens=55, squares=2 * 100 + 400 + 3 * 25)


@pytest.mark.parametrize("memory", [flops.REAL_BYTES, 0])
def test_a_token_pays_for_the_experts_that_it_is_sent_to(compose_cell, monkeypatch, tmp_path, memory):
    sizes = {"hidden_size": 32, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 4, "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 64}
    AutoModel.from_config(OlmoeConfig(**sizes, eos_token_id=1)).save_pretrained(tmp_path)
    monkeypatch.setattr(flops, "REAL_BYTES", memory)
    cfg = compose_cell("eos", "causal", f"model.path={tmp_path}", "lora.targets=[q_proj,v_proj]")
    attention, router, expert, adapter = 4 * 32 * 32, 8 * 32, 3 * 32 * 16, 2 * 2 * 16 * 32
    forward = training_flops(cfg).forward
    assert forward.token == 2 * 2 * (attention + router + 2 * expert + adapter)
