"""Words of English text as `str.split` has them; of scripts without spaces a letter is a word."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.words import first_words, spaced_words, word_count, words_of

CHINESE, THAI = "今天 「去公园」。", "ไปไหน"


@given(st.text(st.characters(max_codepoint=0x24F)), st.integers(0, 8))
def test_words_of_text_with_spaces(text, count):
    assert spaced_words(text) == text.split()
    assert first_words(text) == " ".join(text.split())
    assert first_words(text, count) == " ".join(text.split()[:count])
    if text.isascii():
        assert words_of(text) == re.findall(r"[a-z0-9]+", text.lower())


@pytest.mark.parametrize(
    ("text", "words", "spaced"),
    [
        (CHINESE, list("今天去公园"), ["今", "天", "「去", "公", "园」。"]),
        (THAI, list(THAI), list(THAI)),
        ("PyTorch的模型v2", ["pytorch", "的", "模", "型", "v2"], ["PyTorch", "的", "模", "型", "v2"]),
        ("Größe_x, 한국어 책", ["größe", "x", "한국어", "책"], ["Größe_x,", "한국어", "책"]),
    ],
)
def test_words_of_any_script(text, words, spaced):
    assert (words_of(text), spaced_words(text)) == (words, spaced)


def test_the_first_words_of_a_text_without_spaces():
    assert (first_words(CHINESE, 3), first_words(CHINESE, 0), word_count(CHINESE)) == ("今天 「去", "", 5)
