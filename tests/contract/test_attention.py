"""Causal: the first token is blind to the last. Bi: it sees it. In every state that a decoder comes into."""

import pytest
import torch

from encoders.attention.pattern import sight
from encoders.attention.unpadded import Segments
from encoders.tokens import TextTokenizer
from tests.cells import ATTENTIONS
from tests.contract.conftest import TEXTS, adapted

LITERAL = {"causal": torch.ones(6, 6).tril().bool(), "bi": torch.ones(6, 6).bool()}
POOLER = "eos"  # attention belongs to the backbone


def is_causal(cell, attn):
    """Whether the last layer's states see no later token: with any bidirectional layer they do."""
    return blind_ahead(cell(POOLER, attn))


def blind_ahead(cfg):
    return cfg["attn"]["is_causal"] and not cfg["attn"].get("layers")


def test_the_two_attentions_of_the_study_are_there(cell):
    assert is_causal(cell, "causal")
    assert not is_causal(cell, "bi")
    assert set(LITERAL) <= set(ATTENTIONS)


@pytest.mark.parametrize("precision", ["fp32", "mixed", "bf16"])
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("attn", ATTENTIONS)
def test_sight_is_the_literal_matrix(cell, encoder_of, attn, kernel, precision):
    encoder, _ = encoder_of(POOLER, attn, precision, kernel)
    wanted = LITERAL["causal" if is_causal(cell, attn) else "bi"]
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "mixed"):
        assert torch.equal(sight(encoder.backbone), wanted)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("attn", ATTENTIONS)
def test_in_a_padded_batch(cell, encoder_of, attn, kernel, side):
    """Another last word in every text of a padded batch: does the state of the first token move?"""
    encoder, tokenizer = encoder_of(POOLER, attn, "fp32", kernel)
    batch = TextTokenizer(tokenizer.tokenizer, tokenizer.max_length, side)
    rows = tokenizer(TEXTS)
    one, other = batch.batch(rows), batch.batch(rows)
    texts, last = torch.arange(len(rows)), one.view.last()
    other.input_ids[texts, last] = 77
    assert not torch.equal(one.input_ids, other.input_ids)
    with torch.no_grad():
        moved = (encoder.run_backbone(one) - encoder.run_backbone(other)).abs().amax(dim=-1)
    first = one.view.real.long().argmax(dim=1)
    assert (moved[texts, last] > 1e-2).all()
    if is_causal(cell, attn):
        before = one.view.real & (torch.arange(moved.shape[1]) < last[:, None])
        assert (moved[before] == 0).all()
    else:
        assert (moved[texts, first] > 1e-3).all()


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("attn", ATTENTIONS)
def test_in_training_with_lora_and_dropout(cell, attn, checkpointing):
    """By gradients, independent of `sight`: the first token's state with respect to the last token's embedding."""
    encoder, _ = adapted(cell(POOLER, attn), checkpointing)
    embedded = encoder.backbone.get_input_embeddings()(torch.tensor([[5, 60, 90, 7, 8]])).detach().requires_grad_(True)
    segments = Segments((5,), encoder.backbone.config.is_causal, embedded.device)
    states = encoder.backbone(inputs_embeds=embedded, use_cache=False, segments=segments).last_hidden_state
    (gradient,) = torch.autograd.grad(states[0, 0].square().sum(), embedded)
    seen = gradient[0].norm(dim=-1) > 0
    assert seen.tolist() == [True] + [not is_causal(cell, attn)] * 4


@pytest.mark.slow
@pytest.mark.parametrize("attn", ATTENTIONS)
def test_after_training_saving_and_merging(run_of, attn):
    run = run_of(POOLER, attn)
    wanted = LITERAL["causal" if blind_ahead(run.cfg) else "bi"]
    assert torch.equal(sight(run.module.encoder.backbone), wanted)
    assert torch.equal(sight(run.loaded.encoder.backbone), wanted)
