"""Queries that the instruction moves, by the same contract: no batch, padding, kernel or chunk moves a vector."""

import pytest
import torch

from cli.errors import UserError
from encoders.tokens import TextTokenizer
from tests.contract.conftest import FLOAT32, TEXTS, apart, recorded
from tests.contract.test_gradients import CACHED, DIRECT, assert_equal, gradients, work_on

MOVED = {"pooler.query": "instruction"}
HEADS = [("lastlayer", "all", "bi"), ("lastlayer", "all", "causal"), ("multilayer", "mean", "bi")]
HEADS += [("multilayer", "last", "causal"), ("multilayer", "all", "bi")]
PAIRS = [("find the rest", TEXTS[0]), ("", TEXTS[1]), ("which type is it of?", TEXTS[3]), ("find the rest", TEXTS[2])]


def changed(tokens):
    return {**MOVED, "pooler.tokens": tokens}


@pytest.mark.parametrize("kernel", ["sdpa", "eager", "unpadded"])
@pytest.mark.parametrize(("pooler", "tokens", "attn"), HEADS)
@torch.no_grad()
def test_alone_or_in_any_batch(encoder_of, pooler, tokens, attn, kernel):
    encoder, right = encoder_of(pooler, attn, "fp32", kernel, tuple(changed(tokens).items()))
    rows = right.pairs(PAIRS)
    alone = torch.cat([encoder(right.batch([row])) for row in rows])
    for side in ("right", "left"):
        tokenizer = TextTokenizer(right.tokenizer, right.max_length, side)
        assert apart(encoder(tokenizer.batch(rows)), alone) < FLOAT32
        assert apart(encoder(tokenizer.batch(rows[::-1], multiple_of=8)).flip(0), alone) < FLOAT32
    weight = encoder.pooler.head.of_instruction.weight
    kept = weight.clone()
    weight.zero_()
    still = torch.cat([encoder(right.batch([row])) for row in rows])
    weight.copy_(kept)
    moved = (alone - still).abs().amax(dim=1)
    assert moved[1] < FLOAT32  # no instruction
    assert (moved[[0, 2, 3]] > 1e-3).all()


@pytest.mark.parametrize("attn", ["causal", "bi"])
@torch.no_grad()
def test_under_causal_attention_what_moves_the_queries_is_the_instructions_own(encoder_of, attn):
    encoder, tokenizer = encoder_of("lastlayer", attn, "fp32", "eager", tuple(MOVED.items()))
    batch = tokenizer.batch(tokenizer(TEXTS, "find the rest"))
    means = encoder.pooler.instruction_mean(encoder.run_backbone(batch), batch.view)
    assert (apart(means[1:], means[:-1]) < FLOAT32 * 10) == (attn == "causal")


@pytest.mark.parametrize(("pooler", "tokens", "attn"), HEADS)
def test_gradients_of_chunks_with_and_without_gradcache_are_those_of_plain_autograd(cell, pooler, tokens, attn):
    cfg = cell(pooler, attn, {**changed(tokens), "lora.dropout": 0.0})
    direct = gradients(work_on(cfg, DIRECT))
    assert direct[1]["pooler.head.of_instruction.weight"].any()
    assert_equal(direct, gradients(work_on(cfg, CACHED)))


@pytest.mark.slow
def test_a_run_trains_both_its_queries_and_what_moves_them(cell, tmp_path):
    run = recorded(cell("multilayer", "bi", {**MOVED, "data.instruction": "find the rest"}), tmp_path / "run")
    start, end = run.copies[0].pooler.head, run.module.encoder.pooler.head
    assert not start.of_instruction.weight.any()
    assert end.of_instruction.weight.any()
    assert not torch.equal(start.queries, end.queries)
    tokenizer = run.loaded.tokenizer
    with torch.no_grad():
        trained = run.module.encoder.eval()(tokenizer.batch(tokenizer.pairs(PAIRS[:1])))
    assert apart(torch.from_numpy(run.loaded.encode([PAIRS[0][1]], PAIRS[0][0])), trained) < FLOAT32


def test_data_without_an_instruction_is_refused(cell, tmp_path):
    with pytest.raises(UserError, match=r"^pooler.query=instruction, and no query has an instruction"):
        recorded(cell("multilayer", "bi", MOVED), tmp_path / "run")
