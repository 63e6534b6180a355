"""Near-copies against Jaccard similarity counted by brute force on sets of words."""

import random
import re
import zlib
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.copies import SPACED, NearCopies, distinct, first_words, shingles, word_count, words_of


@cache
def grams(text: str) -> set[tuple[str, ...]]:
    """Return the word 5-grams; a shorter text is one gram."""
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))}


def jaccard(a: str, b: str) -> float:
    """Of the sets of word 5-grams, written out."""
    return len(grams(a) & grams(b)) / len(grams(a) | grams(b))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Forty texts of 100 words, each followed by seven copies of it with 1 to 30 words changed."""
    draw = random.Random(0)
    words = [f"w{i}" for i in range(500)]
    made = []
    for _ in range(40):
        base = draw.choices(words, k=100)
        for edits in (0, 1, 2, 3, 5, 8, 15, 30):
            copy = list(base)
            for place in draw.sample(range(100), edits):
                copy[place] = draw.choice(words)
            made.append(" ".join(copy))
    return made


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 7, 30])
def test_shingles_are_the_hashes_of_five_words_in_a_row(count):
    text = "".join(f"{'Ä' * (i % 3)} -- W{10**i}" for i in range(count))
    assert shingles(text) == {zlib.crc32(" ".join(gram).encode()) for gram in grams(text)}


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_same_answer_as_brute_force(texts, threshold):
    """Each text against the one it was made from."""
    truth, found = [], []
    for i, text in enumerate(texts):
        index = NearCopies(threshold)
        index.keep(texts[i // 8 * 8])
        truth.append(jaccard(text, texts[i // 8 * 8]) >= threshold)
        found.append(text in index)
    assert 80 < sum(truth) < len(texts) - 80
    assert found == truth


def test_distinct_leaves_no_two_alike_and_drops_none_without_a_reason(texts):
    kept = distinct(texts, threshold=0.5)
    for i in kept:
        assert all(jaccard(texts[i], texts[k]) < 0.5 for k in kept if k < i)
    for i in set(range(len(texts))) - set(kept):
        assert any(jaccard(texts[i], texts[k]) >= 0.5 for k in kept if k < i)


def test_a_copy_that_is_kept_finds_its_own_copies():
    """Between A and B, and between B and C, but not between A and C: B must be found out by C's side too."""
    a, b, c = "1 2 3 4 5 6 7 8", "2 3 4 5 6 7 8", "3 4 5 6 7 8"
    assert jaccard(a, b) > 0.5 > jaccard(a, c) - 1e-9
    index = NearCopies(0.6)
    index.keep(a)
    assert b in index
    assert c not in index
    index.keep(b)
    assert c in index


CHINESE, THAI = "今天 「去公园」。", "ไปไหน"


@given(st.text(st.characters(max_codepoint=0x24F)), st.integers(0, 8))
def test_words_of_text_with_spaces(text, count):
    assert SPACED.findall(text) == text.split()
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
    assert (words_of(text), SPACED.findall(text)) == (words, spaced)


def test_the_first_words_of_a_text_without_spaces():
    assert (first_words(CHINESE, 3), first_words(CHINESE, 0), word_count(CHINESE)) == ("今天 「去", "", 5)
