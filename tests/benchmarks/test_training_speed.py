"""What the training benchmark times has one loss and one gradient; the limit does what the stock model does."""

import pytest
import torch

from benchmarks.speed.dense_limit import DenseModel, DenseStep, flops_a_token
from benchmarks.speed.reference_step import ReferenceStep
from benchmarks.speed.sentence_transformers_step import PeerStep
from benchmarks.speed.step import OurStep, encoder_of, start_alike
from benchmarks.speed.training_speed import of_experts
from benchmarks.speed.work import texts_of
from encoders.tokens import Batch
from poolers.shared.base import TEXT
from training.cost.flops import Work, training_flops

WORDS = ("objective.hard_negatives=1", "token_budget=200")
CELLS = [("eos", "causal"), ("eos", "bi"), ("multilayer", "causal"), ("multilayer", "bi")]


def same(ours, other, batch):
    """Whether loss and all gradients are equal, dropout off."""
    start_alike(ours, other)
    loss, gradients = ours.without_dropout(batch)
    their_loss, theirs = other.without_dropout(batch)
    assert their_loss == pytest.approx(loss, abs=1e-5)
    assert theirs.keys() == gradients.keys()
    largest = max(float(g.abs().max()) for g in gradients.values())
    assert largest > 1e-3
    for name, gradient in gradients.items():
        torch.testing.assert_close(theirs[name], gradient, rtol=0, atol=2e-4 * largest)


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
def test_sentence_transformers_has_our_loss_and_gradient(compose_cell, batch, pooler, attn, kernel):
    cfg = compose_cell(pooler, attn, *WORDS)
    same(OurStep(cfg), PeerStep(cfg, kernel), batch)


@pytest.mark.parametrize("mini", [{"mini_batch_size": 3}, {"mini_batch_num_tokens": 60}])
def test_its_cached_loss_has_that_of_our_gradcache(compose_cell, batch, mini):
    cfg = compose_cell("eos", "causal", *WORDS, "trainer.gradcache=true")
    same(OurStep(cfg), PeerStep(cfg, "eager", mini), batch)


@pytest.mark.parametrize("attn", ["causal", "bi"])
@pytest.mark.parametrize("head", ["small", "reference_code"])
def test_reference_step_has_our_loss_and_gradient(compose_cell, batch, attn, head):
    cfg = compose_cell("multilayer", attn, *WORDS, f"head={head}", "head.residual=true")
    same(OurStep(cfg), ReferenceStep(cfg, "sdpa"), batch)


def test_all_count_the_same_tokens_and_move_the_weights(compose_cell, batch):
    cfg = compose_cell("multilayer", "bi", *WORDS)
    steps = [OurStep(cfg), PeerStep(cfg, "eager"), ReferenceStep(cfg, "eager"), OurStep(of_experts(cfg, "router"))]
    expected = sum(steps[0].lengths(batch))
    for step in steps:
        before = [p.detach().clone() for p in step.trained]
        assert step(batch) == expected
        assert any(not torch.equal(a, b) for a, b in zip(before, step.trained, strict=True))


def test_dropout_is_on_while_all_are_timed(compose_cell, batch):
    cfg = compose_cell("eos", "causal", *WORDS, "lora.dropout=0.5")
    ours, peer = OurStep(cfg), PeerStep(cfg, "eager")
    start_alike(ours, peer)
    for step in (ours, peer):
        with_dropout = step.backward(batch)[0].item()
        assert with_dropout != pytest.approx(step.without_dropout(batch)[0], abs=1e-4)


def test_dense_model_is_the_encoder_on_texts_of_one_length(compose_cell):
    cfg = compose_cell("eos", "causal", *WORDS)
    encoder, _ = encoder_of(cfg)
    ids = torch.arange(5 * 8).reshape(5, 8) + 4
    dense = DenseModel(cfg, "sdpa", 16, adapted=False)
    positions = torch.arange(8).expand(5, 8)
    with torch.no_grad():
        wanted = encoder(Batch(ids, torch.full((5, 8), TEXT), positions))
        torch.testing.assert_close(dense._embed(ids), wanted, rtol=0, atol=1e-6)


def test_dense_step_has_as_many_tokens_and_one_gradient_for_any_chunks(compose_cell, batch):
    cfg = compose_cell("eos", "bi", *WORDS)
    gradients = []
    for rows in (60, 10_000):
        step = DenseStep(cfg, "eager", rows)
        torch.manual_seed(0)
        loss, found = step.without_dropout(batch)
        gradients.append(found)
        tokens = sum(OurStep(cfg).lengths(batch))
        assert step.model.shape(batch)[0] * step.model.shape(batch)[1] == pytest.approx(tokens, rel=0.05)
    assert loss > 0
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient)


def test_flops_need_no_padding(compose_cell):
    cfg = compose_cell("eos", "causal", *WORDS)
    count = training_flops(cfg).both
    assert flops_a_token(cfg, [8, 8]) == pytest.approx(count(Work(1, 2, 16, 128)) / 16)
    assert flops_a_token(cfg, [4, 12]) < count(Work(1, 2, 24, 288)) / 16


def test_texts_of_a_batch_are_in_columns(batch):
    texts = texts_of(batch)
    assert [texts[0], texts[7], texts[14]] == [batch[0].query, batch[0].positive, batch[0].negatives[0]]
