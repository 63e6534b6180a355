"""Texts that begin alike and go on alike or unlike: LLM2Vec's (A, B), (A, C), (A, D), made of docstrings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from cli.errors import UserError
from corpora.copies import first_words, word_count
from corpora.docstrings import Docstring
from encoders.templates import TEXT_FIELD
from encoders.text_encoder import by_token_budget
from encoders.tokens import Batch, TextTokenizer, Tokens
from poolers.shared.base import EOS, INSTRUCTION, LANDMARK

OPENING_WORDS = (6, 16)  # of A: a sentence, and room for what follows in a short max_length
GOING_ON_WORDS = (6, 24)  # of B, C and D
ALIKE = 0.2  # largest share of words that D may have in common with B or C
TRIES = 200  # draws of A and D before a pair is left out
FEWEST = 4  # tokens that follow A
NO_PROSE = re.compile(  # where the description of a docstring ends
    r"^\s*(?:parameters?|returns?|yields?|raises|warns?|attributes|methods|args|arguments|notes?|examples?|see also|"
    r"references|other parameters|keyword args|options)\s*:?\s*$|^\s*[\w*, ]+\s:\s|^\s*[-*.:|+=]",
    re.IGNORECASE | re.MULTILINE,
)
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Quadruple:
    """A begins three texts; B, C and D follow. B and C describe one thing, D another."""

    a: str
    b: str
    c: str
    d: str


def quadruples(docstrings: Sequence[Docstring], count: int, seed: int = 0) -> list[Quadruple]:
    """Return `count` of them, or as many as there are, in an order that `seed` draws.

    B is a docstring's summary, C the first words of the description that follows it, D those of a docstring of
    another package, A the summary of a docstring of a third package. B, C and D have as many words. So A fits none of
    them better than another, C and D are of one kind, and what tells them apart is that C goes with B. D shares at
    most a fifth of its words with B or C (Jaccard's index). A docstring is B's once.
    """
    usable = sorted({(d.package, first_words(d.summary), prose(d.body)) for d in docstrings})
    openings = [(package, text) for package, text, _ in usable if _within(text, OPENING_WORDS)]
    pairs = [row for row in usable if _within(row[1], GOING_ON_WORDS) and word_count(row[2]) >= word_count(row[1])]
    if not openings:
        return []
    rng = np.random.default_rng(seed)
    drawn = (_quadruple(pairs[k], openings, pairs, rng) for k in rng.permutation(len(pairs)))
    return list(islice(filter(None, drawn), count))


def _quadruple(
    pair: tuple[str, str, str],
    openings: list[tuple[str, str]],
    pairs: list[tuple[str, str, str]],
    rng: np.random.Generator,
) -> Quadruple | None:
    package, b, rest = pair
    size = word_count(b)
    c = first_words(rest, size)
    if shared_words(b, c) == 1:
        return None  # the description repeats the summary
    for i, j in zip(rng.integers(0, len(openings), TRIES), rng.integers(0, len(pairs), TRIES), strict=True):
        (third, a), (other, _, described) = openings[i], pairs[j]
        d = first_words(described, size)
        three = len({package, third, other}) == 3 and word_count(d) == size
        if three and max(shared_words(d, b), shared_words(d, c)) <= ALIKE:
            return Quadruple(a, b, c, d)
    return None


def prose(body: str) -> str:
    """Return the description that a body begins with, before fields, lists and headings, on one line."""
    end = NO_PROSE.search(body)
    return first_words(body[: end.start()] if end else body)


def shared_words(one: str, other: str) -> float:
    """Jaccard's index of the sets of words of two texts, in lower case: 0 for none in common, 1 for the same."""
    a, b = (set(WORD.findall(text.lower())) for text in (one, other))
    return len(a & b) / len(a | b) if a | b else 0.0


def _within(text: str, words: tuple[int, int]) -> bool:
    return words[0] <= word_count(text) <= words[1]


class Trio(NamedTuple):
    """q, s+ and s- of one quadruple: as many tokens each, the same up to the end of A, whose role is INSTRUCTION."""

    q: Tokens
    plus: Tokens
    minus: Tokens


def trios(quadruples: Sequence[Quadruple], tokenizer: TextTokenizer) -> list[Trio]:
    """Tokenise each quadruple; those whose A is not the same tokens in all three, or fills max_length, are left out.

    The texts are "A B", "A C" and "A D" without instruction. What follows A is cut to as many tokens in the three:
    every product of matrices then has the same shape and every token of A the same place in it, so that without
    reading ahead its states are the same bit by bit.
    """
    return [trio for quadruple in quadruples if (trio := _trio(quadruple, tokenizer)) is not None]


def _trio(quadruple: Quadruple, tokenizer: TextTokenizer) -> Trio | None:
    if TEXT_FIELD in quadruple.a:
        return None
    try:
        following = quadruple.b, quadruple.c, quadruple.d
        rows = [tokenizer([text], f"{quadruple.a} {TEXT_FIELD}")[0] for text in following]
    except UserError:  # A alone fills max_length
        return None
    length = min(map(len, rows))
    cut = [_cut(row, length) for row in rows]
    alike = {(tuple(row.ids[: _end(row)]), tuple(row.roles)) for row in cut}
    return Trio(*cut) if len(alike) == 1 and length - _end(cut[0]) > FEWEST else None


def _end(row: Tokens) -> int:
    """Return the end of A."""
    return max((i + 1 for i, role in enumerate(row.roles) if role == INSTRUCTION), default=0)


def _cut(row: Tokens, length: int) -> Tokens:
    """The first tokens of a row, its EOS kept, `length` in all."""
    places = [*range(length - 1), len(row) - 1] if row.roles[-1] in (EOS, LANDMARK) else range(length)
    return Tokens([row.ids[i] for i in places], [row.roles[i] for i in places])


def batches(
    fitting: Sequence[Trio], tokenizer: TextTokenizer, budget: int
) -> Iterator[tuple[list[int], tuple[Batch, ...]]]:
    """Yield (numbers of trios, the batches of their q, s+ and s-), which have the same roles and positions."""
    for chunk in by_token_budget([len(trio.q) for trio in fitting], budget):
        sides = zip(*(fitting[i] for i in chunk), strict=True)
        yield chunk, tuple(tokenizer.batch(list(side)) for side in sides)
