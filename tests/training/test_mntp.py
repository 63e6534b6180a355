"""MNTP: the loss against float64 text by text, a run that learns, and one that is interrupted."""

import json
import shutil

import pytest
import torch
from transformers import AutoModelForCausalLM

from cli.errors import UserError
from corpora.triples import Triple
from poolers.shared.base import BOS
from training.checks import check_sizes
from training.objectives.mntp import MNTP, blocks
from training.set_up import set_up

TEXTS = ["the sum of two arrays", "a new array is returned with the same shape", "type of its first argument"]


def mntp(cfg, texts=TEXTS):
    """The objective on `texts`, scored on several copies of them, so that some token is masked."""
    return MNTP(set_up(cfg), [Triple(t, t) for t in texts], [Triple(t, t) for t in TEXTS * 4])


def literal(model, rows, is_causal):
    """Mean of -log p(token i | state of token i - 1), each text alone, with an additive mask, in float64."""
    total, count = 0.0, 0
    for row in rows:
        n = len(row.tokens)
        mask = torch.zeros(n, n, dtype=torch.float64)
        if is_causal:
            mask = mask.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        with torch.no_grad():
            out = model(input_ids=torch.tensor([row.tokens.ids]), attention_mask=mask[None, None])
        for i, target in zip(row.places, row.targets, strict=True):
            total -= float(out.logits[0, i - 1].log_softmax(dim=-1)[target])
            count += 1
    return total / count


@pytest.mark.parametrize("attn", ["causal", "bi"])
@pytest.mark.parametrize("kernel", ["unpadded", "sdpa"])
def test_the_loss_is_that_of_each_text_alone_in_float64(compose_cell, headed_model, attn, kernel):
    words = ["objective=mntp", f"model.path={headed_model}", f"model.attn_implementation={kernel}", "token_budget=16"]
    cfg = compose_cell("mean", attn, *words, "padding_side=left", "lora.dropout=0.0", "objective.mask_share=0.5")
    objective = mntp(cfg)
    rows, tokens = objective.lay_out(range(3), 0)
    assert len(objective.work.chunks(tokens)) > 1
    model = AutoModelForCausalLM.from_pretrained(headed_model, dtype=torch.float64, attn_implementation="eager")
    wanted = literal(model, rows, attn == "causal")
    assert float(objective.backward(rows, tokens, 0)) == pytest.approx(wanted, rel=1e-5)
    assert objective.loss.scores(rows)[0] == pytest.approx(wanted, rel=1e-5)


def test_only_the_adapter_gets_a_gradient_and_it_does_not_depend_on_the_chunks(compose_cell, headed_model):
    words = ["objective=mntp", f"model.path={headed_model}", "lora.dropout=0.0"]
    gradients = []
    for budget in (8, 4096):
        objective = mntp(compose_cell("mean", "bi", *words, f"token_budget={budget}"))
        objective.backward(*objective.lay_out(range(3), 0), 0)
        gradients.append({n: p.grad for n, p in objective.work.encoder.named_parameters() if p.grad is not None})
    assert all("lora_" in name for name in gradients[0])
    assert gradients[0].keys() == gradients[1].keys()
    largest = max(float(g.abs().max()) for g in gradients[0].values())
    assert max(float((gradients[0][n] - gradients[1][n]).abs().max()) for n in gradients[0]) < 1e-6 * largest
    assert largest > 1e-4


def test_the_head_is_the_base_s_own_tied_or_not(headed_model, small_model, compose_cell, tmp_path_factory):
    objective = mntp(compose_cell("mean", "bi", "objective=mntp", f"model.path={headed_model}"))
    model = AutoModelForCausalLM.from_pretrained(headed_model)
    assert torch.equal(objective.loss.head, model.lm_head.weight)
    tied = tmp_path_factory.mktemp("tied")
    shutil.copytree(headed_model, tied, dirs_exist_ok=True)
    config = json.loads((tied / "config.json").read_text())
    (tied / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": True}))
    theirs = AutoModelForCausalLM.from_pretrained(tied)
    assert not torch.equal(theirs.lm_head.weight, theirs.model.embed_tokens.weight), "a head in the file goes first"
    objective = mntp(compose_cell("mean", "bi", "objective=mntp", f"model.path={tied}"))
    assert torch.equal(objective.loss.head, theirs.lm_head.weight)
    with pytest.raises(UserError, match="has no language-model head"):
        mntp(compose_cell("mean", "bi", "objective=mntp", f"model.path={small_model}"))


@pytest.mark.parametrize(
    ("pooler", "words", "message"),
    [
        ("multilayer", [], "predicts tokens and pools nothing"),
        ("mean", ["backbone.frozen=true"], "predicts tokens and pools nothing"),
    ],
)
def test_what_does_not_fit_is_refused(compose_cell, pooler, words, message):
    with pytest.raises(UserError, match=message):
        check_sizes(compose_cell(pooler, "bi", "objective=mntp", *words))


def test_packed_texts_are_the_ids_of_all_texts_end_to_end(compose_cell, headed_model):
    """As the published code lays them out: BOS before each text, if the tokenizer puts one; cut every `max_length`."""
    words = ["objective=mntp", f"model.path={headed_model}", "max_length=8"]
    tokenizer = set_up(compose_cell("mean", "bi", *words)).tokenizer
    start = [] if tokenizer.bos is None else [tokenizer.bos]
    stream = [i for text in TEXTS for i in (*start, *tokenizer.tokenizer(text, add_special_tokens=False)["input_ids"])]
    packed = blocks(TEXTS, tokenizer)
    assert [i for block in packed for i in block.ids] == stream[: len(stream) // 8 * 8]
    assert {len(block) for block in packed} == {8}
    begins = [i for block in packed for i, role in zip(block.ids, block.roles, strict=True) if role == BOS]
    assert begins == [i for i in stream[: 8 * len(packed)] if i == tokenizer.bos]
    with pytest.raises(UserError, match="needs 8 tokens for a block, and the texts have"):
        blocks([], tokenizer)


def test_the_loss_of_packed_blocks_is_that_of_each_block_in_float64(compose_cell, headed_model):
    words = ["objective=mntp", "objective.packed=true", f"model.path={headed_model}", "max_length=8", "token_budget=16"]
    cfg = compose_cell(
        "mean", "bi", *words, "lora.dropout=0.0", "objective.mask_share=0.5", "trainer.global_batch_size=2"
    )
    objective = mntp(cfg, TEXTS * 2)
    packed = blocks(TEXTS * 2, objective.work.tokenizer)
    assert [t.source for t in objective.examples] == ["packed"] * len(packed)
    rows, tokens = objective.lay_out([1, 0], 0)
    assert [len(t) for t in tokens] == [8, 8]
    model = AutoModelForCausalLM.from_pretrained(headed_model, dtype=torch.float64, attn_implementation="eager")
    wanted = literal(model, rows, is_causal=False)
    assert float(objective.backward(rows, tokens, 0)) == pytest.approx(wanted, rel=1e-5)
