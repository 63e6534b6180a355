"""Causal: the first token is blind to the last. Bi: it sees it. In every state that a decoder comes into."""

import pytest
import torch

from encoders.attention.pattern import pattern_of
from encoders.attention.probe import visible
from encoders.attention.unpadded import Segments
from encoders.tokens import TextTokenizer
from tests.cells import ATTENTIONS
from tests.contract.conftest import TEXTS, adapted

LITERAL = {"causal": torch.ones(6, 6).tril().bool(), "bi": torch.ones(6, 6).bool()}
LAYERS = 3  # of the small model
POOLER = "eos"  # attention belongs to the backbone


def reach(cell, attn, width):
    """[T, T] bool: whether the last layer's state of token i depends on token j, through all layers and past them."""
    reached, places = torch.eye(width).bool(), torch.arange(width)
    for mask_fn in pattern_of(cell(POOLER, attn)["attn"]).of_layers(LAYERS):
        allowed = mask_fn(places[:, None], places[None])
        reached |= (allowed[:, :, None] & reached[None]).any(dim=1)
    return reached


def test_the_two_attentions_of_the_study_are_there(cell):
    assert set(LITERAL) <= set(ATTENTIONS)
    assert all(torch.equal(reach(cell, attn, 6), LITERAL[attn]) for attn in LITERAL)
    assert torch.equal(reach(cell, "bi_last", 6), LITERAL["bi"])


@pytest.mark.parametrize("precision", ["fp32", "mixed", "bf16"])
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("attn", ATTENTIONS)
def test_sight_is_the_literal_matrix(cell, encoder_of, attn, kernel, precision):
    encoder, _ = encoder_of(POOLER, attn, precision, kernel)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "mixed"):
        assert torch.equal(visible(encoder.backbone), reach(cell, attn, 6))


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
    assert (moved[texts, last] > 1e-2).all()
    for text, row in enumerate(rows):
        sees_last = reach(cell, attn, len(row))[:, -1]
        of_text = moved[text][one.view.real[text]]
        assert (of_text[~sees_last] == 0).all()
        assert not sees_last[0] or of_text[0] > 1e-3


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("attn", ATTENTIONS)
def test_in_training_with_lora_and_dropout(cell, attn, checkpointing):
    """By gradients, independent of the probe: the first token's state with respect to the last token's embedding."""
    encoder, _ = adapted(cell(POOLER, attn), checkpointing)
    embedded = encoder.backbone.get_input_embeddings()(torch.tensor([[5, 60, 90, 7, 8]])).detach().requires_grad_(True)
    segments = Segments((5,), embedded.device)
    states = encoder.backbone(inputs_embeds=embedded, use_cache=False, segments=segments).last_hidden_state
    (gradient,) = torch.autograd.grad(states[0, 0].square().sum(), embedded)
    seen = gradient[0].norm(dim=-1) > 0
    assert seen.tolist() == reach(cell, attn, 5)[0].tolist()
