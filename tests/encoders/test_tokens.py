"""BOS and EOS exactly once after truncation; roles from offsets; texts without content refused."""

import pytest
from transformers import AutoTokenizer

from cli.errors import UserError
from encoders.chunking import by_token_budget
from encoders.templates import DEFAULT
from encoders.tokens import TextTokenizer
from poolers.shared.base import EOS, INSTRUCTION, PAD, TEXT
from tests.hub_model import HUB_MODELS


@pytest.fixture(params=["small", *HUB_MODELS])
def tokenizer(request, model_folder):
    """Of the embedded kind and of the hub's, whose texts begin with BOS and a space."""
    return AutoTokenizer.from_pretrained(model_folder(request.param))


LONG = "the sum of two arrays is returned as a new array " * 20


def test_roles_follow_offsets(tokenizer):
    rules = TextTokenizer(tokenizer, 128)
    text, instruction = "two arrays", "find the sum"
    (row,) = rules([text], instruction)
    texts = [i for i, r in zip(row.ids, row.roles, strict=True) if r == TEXT]
    others = [i for i, r in zip(row.ids, row.roles, strict=True) if r == INSTRUCTION]
    assert text in tokenizer.decode(texts).strip() or tokenizer.decode(texts).strip() in DEFAULT.query.instructed + text
    assert tokenizer.decode(others).strip().startswith("Instruct: find the sum")
    assert len(texts) + len(others) == len(row) - 1 - (rules.bos is not None)


@pytest.mark.parametrize(("text", "what"), [("", "empty"), ("  \n", "empty"), ("<|endoftext|>", "only special")])
def test_texts_without_content_are_refused(small_model, text, what):
    rules = TextTokenizer(AutoTokenizer.from_pretrained(small_model), 32)
    with pytest.raises(UserError, match=what):
        rules(["fine", text])


def test_an_instruction_that_leaves_no_room_is_refused(tokenizer):
    with pytest.raises(UserError, match="no room"):
        TextTokenizer(tokenizer, 8)(["two arrays"], "find the sum of two arrays and the shape of it")


@pytest.mark.parametrize("side", ["left", "right"])
def test_batch_pads_on_its_side(tokenizer, side):
    rules = TextTokenizer(tokenizer, 64, side)
    rows = rules(["sum", "the sum of two arrays"])
    batch = rules.batch(rows, multiple_of=8)
    assert batch.input_ids.shape[1] % 8 == 0
    for i, row in enumerate(rows):
        where = slice(-len(row), None) if side == "left" else slice(0, len(row))
        assert batch.input_ids[i, where].tolist() == row.ids
        assert batch.position_ids[i, where].tolist() == list(range(len(row)))
        assert (batch.roles[i] == PAD).sum() == batch.roles.shape[1] - len(row)
    assert batch.view.last().tolist() == [(batch.roles[i] == EOS).nonzero().item() for i in range(2)]


def test_chunks_hold_every_text_once_within_the_budget():
    lengths = [5, 90, 3, 3, 40, 7, 200, 1]
    chunks = by_token_budget(lengths, 100)
    assert sorted(i for c in chunks for i in c) == list(range(len(lengths)))
    assert all(len(c) == 1 or len(c) * max(lengths[i] for i in c) <= 100 for c in chunks)
    assert chunks[0] == [6], "the longest first: what does not fit fails at once"
    assert max(map(len, by_token_budget([1] * 10, 100, most=3))) == 3
