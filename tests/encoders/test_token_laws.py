"""Laws of TextTokenizer for any text, template and length: one frame, roles that partition the tokens, whole words.

Texts without content are refused; batches and chunks hold each text once.
"""

from functools import cache

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from cli.compose import composed, options, plain
from cli.errors import UserError
from encoders.templates import TEXT_FIELD, pieces, template_of
from encoders.text_encoder import by_token_budget
from encoders.tokens import TextTokenizer
from poolers.shared.base import BOS, ECHO, EOS, INSTRUCTION, LANDMARK, PAD, PLACEHOLDER, TEXT
from tests.hub_model import HUB_MODELS

TEMPLATES = sorted(options("template"))
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60) | st.sampled_from(
    ("</s>", "a </s> b <|endoftext|>", "<s> the sum", "Instruct: x\nQuery: y", "{text}", "👩‍👩‍👧 שלום")
)
INSTRUCTIONS = st.sampled_from((None, "find the sum", "a\nb: c", "</s> end", "find 👩‍👩‍👧"))


@cache
def template(name):
    return template_of(plain(composed("train", [f"template={name}"])))


@pytest.fixture(scope="module", params=["small", *HUB_MODELS])
def tokenizer(request, model_folder):
    return AutoTokenizer.from_pretrained(model_folder(request.param))


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(TEMPLATES),
    text=TEXTS,
    instruction=INSTRUCTIONS,
    side=st.sampled_from(("query", "document")),
    max_length=st.integers(8, 90),
)
def test_laws(tokenizer, *, name, text, instruction, side, max_length):
    form = template(name)
    rules = TextTokenizer(tokenizer, max_length, template=form)
    asked = form.asked(instruction or "", side)
    try:
        (row,) = rules([text], asked)
        (whole,) = TextTokenizer(tokenizer, 10_000, template=form)([text], asked)
    except UserError as error:
        assume("leaves no room" not in str(error) and "it has no embedding" not in str(error))
        raise
    assert len(row.ids) == len(row.roles) <= max_length
    # one frame: EOS at the end, where the template has it, and elsewhere as what is added; BOS once, at the start
    assert row.ids.count(rules.eos) == sum(row.roles.count(role) for role in (EOS, LANDMARK, PLACEHOLDER))
    assert not form.prepended or row.roles.index(TEXT) == row.roles.index(PLACEHOLDER) + 1
    assert row.roles.count(PLACEHOLDER) == bool(form.prepended)
    assert row.roles.count(EOS) == (form.eos and not form.landmarks)
    assert not form.eos or (row.ids[-1], row.roles[-1]) == (rules.eos, LANDMARK if form.landmarks else EOS)
    assert row.roles.count(BOS) == (rules.bos is not None)
    assert rules.bos is None or (row.ids[0], row.roles[0], row.ids.count(rules.bos)) == (rules.bos, BOS, 1)
    # roles partition the tokens
    assert set(row.roles) <= {BOS, EOS, TEXT, ECHO, INSTRUCTION, LANDMARK, PLACEHOLDER}
    assert TEXT in row.roles
    # truncation takes the end of the text alone: words around it are whole, an echo is cut as its text is
    written = form.form(asked)
    parts = pieces(written)
    words = [id_ for id_, role in zip(row.ids, row.roles, strict=True) if role == INSTRUCTION]
    assert words == [id_ for id_, role in zip(whole.ids, whole.roles, strict=True) if role == INSTRUCTION]
    copies = [[i for i, r in zip(row.ids, row.roles, strict=True) if r == role] for role in (TEXT, ECHO)]
    assert parts.count(TEXT_FIELD) == 1 or copies[0] == copies[1]
    full = [i for i, r in zip(whole.ids, whole.roles, strict=True) if r == TEXT]
    assert copies[0] == full[: len(copies[0])]
    assert len(whole) > max_length or row == whole


@pytest.mark.parametrize(("text", "what"), [("", "empty"), ("  \n", "empty")])
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
