"""SimCSE: two passes of a text that differ by dropout alone, also by that of attention; a whole stage."""

import math

import pytest
import torch

from cli.errors import UserError
from training.checks import check_sizes
from training.objectives.infonce import infonce
from training.objectives.simcse import set_attention_dropout, twice
from training.set_up import set_up

TEXTS = ["the sum of two arrays", "a new array", "type of its first argument"]


def test_each_text_stands_twice_and_copies_in_the_batch_are_masked():
    layout = twice(["a", "b", "a"])
    assert layout.texts == [("", t) for t in ("a", "b", "a", "a", "b", "a")]
    assert layout.queries.tolist() == [0, 1, 2]
    assert layout.documents.tolist() == [3, 4, 5]
    assert layout.masked.tolist() == [[False, False, True], [False, False, False], [True, False, False]]
    assert twice(["a", "b", "c", "d"], 2).masked.tolist() == [
        [False, False, True, True],
        [False, False, True, True],
        [True, True, False, False],
        [True, True, False, False],
    ]


def test_the_loss_is_that_of_the_diagonal():
    torch.manual_seed(0)
    vectors, layout, temperature = torch.randn(6, 5), twice(["a", "b", "c"]), 0.5
    unit = vectors.double() / vectors.double().norm(dim=1, keepdim=True)
    cosine = (unit[:3] @ unit[3:].T / temperature).tolist()
    wanted = sum(math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(cosine)) / 3
    loss = infonce(vectors[layout.queries], vectors[layout.documents], layout.masked, temperature)
    assert float(loss) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("kernel", ["unpadded", "eager", "sdpa"])
@pytest.mark.parametrize("attn", ["causal", "bi"])
def test_dropout_of_attention_alone_tells_the_two_passes_apart(compose_cell, kernel, attn):
    """LoRA is at its start and its dropout is off, so attention is all that can differ; evaluation stays as it is."""
    cfg = compose_cell("mean", attn, "objective=simcse", f"model.attn_implementation={kernel}", "lora.dropout=0.0")
    made = set_up(cfg)
    work = made.work
    rows = work.tokenizer.pairs(twice(TEXTS).texts)
    base, without = work.vectors(rows, None), work.vectors(rows, 0)
    set_attention_dropout(made.encoder.backbone, 0.3)
    dropped = work.vectors(rows, 0)
    assert float((without[:3] - without[3:]).abs().max()) < 1e-6
    assert float((dropped[:3] - dropped[3:]).abs().amax(dim=1).min()) > 1e-3, "each text has two vectors"
    assert torch.equal(work.vectors(rows, 0), dropped), "the step decides what is dropped"
    assert not torch.equal(work.vectors(rows, 1), dropped)
    assert torch.equal(work.vectors(rows, None), base), "evaluation drops nothing"


def test_dropout_of_lora_alone_does_so_too(compose_cell):
    made = set_up(compose_cell("mean", "bi", "objective=simcse", "lora.dropout=0.3"))
    for name, p in made.encoder.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.1)
    work = made.work
    vectors = work.vectors(work.tokenizer.pairs(twice(TEXTS).texts), 0)
    assert float((vectors[:3] - vectors[3:]).abs().amax(dim=1).min()) > 1e-4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["objective.hard_negatives=1"], "raw text, which has no hard negatives"),
        (["objective.attention_dropout=0", "lora.dropout=0"], "needs dropout"),
    ],
)
def test_what_does_not_fit_is_refused(compose_cell, words, message):
    with pytest.raises(UserError, match=message):
        check_sizes(compose_cell("mean", "bi", "objective=simcse", *words))
