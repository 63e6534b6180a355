"""Laws of TextTokenizer for any text, template and length: one frame, roles that partition the tokens, whole words."""

from functools import cache

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from cli.compose import composed, options, plain
from cli.errors import UserError
from encoders.templates import TEXT_FIELD, pieces, template_of
from encoders.tokens import TextTokenizer
from poolers.shared.base import BOS, ECHO, EOS, INSTRUCTION, TEXT
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
    # one frame: EOS once, at the end, where the template has it; BOS once, at the start, where the tokenizer has it
    assert row.ids.count(rules.eos) == row.roles.count(EOS) == form.eos
    assert not form.eos or (row.ids[-1], row.roles[-1]) == (rules.eos, EOS)
    assert row.roles.count(BOS) == (rules.bos is not None)
    assert rules.bos is None or (row.ids[0], row.roles[0], row.ids.count(rules.bos)) == (rules.bos, BOS, 1)
    # roles partition the tokens
    assert set(row.roles) <= {BOS, EOS, TEXT, ECHO, INSTRUCTION}
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
