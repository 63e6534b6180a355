"""The words of a text, in scripts that put spaces between them and in scripts that do not."""

import re
from itertools import islice

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")  # a letter of a script without spaces is a word
ASCII_WORD = re.compile(r"[a-z0-9]+")  # the same words, of ASCII text
MARKS = rf"[^\w\s{UNSPACED}]*"
SPACED = re.compile(rf"{MARKS}[{UNSPACED}]{MARKS}|[^\s{UNSPACED}]+")  # with the punctuation around it


def words_of(text: str) -> list[str]:
    """Return the words by which texts are compared: in lower case, without punctuation and underscores."""
    lower = text.lower()
    return (ASCII_WORD if lower.isascii() else WORD).findall(lower)


def spaced_words(text: str) -> list[str]:
    """Return the words between spaces as they stand; a letter of a script without spaces is one."""
    return SPACED.findall(text)


def word_count(text: str) -> int:
    """Return the number of `spaced_words`."""
    return len(spaced_words(text))


def first_words(text: str, count: int | None = None) -> str:
    """Return the first `count` of `spaced_words` (None: all) on one line, with one space where there were any."""
    line = " ".join(text.split())
    ends = [0, *(word.end() for word in islice(SPACED.finditer(line), count))]
    return line[: ends[-1]]
