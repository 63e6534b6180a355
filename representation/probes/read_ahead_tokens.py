"""q, s+ and s- as tokens of one length, so that a decoder runs the three in exactly the same way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from encoders.chunks import by_token_budget
from encoders.templates import TEXT_FIELD
from encoders.tokens import Batch, TextTokenizer, Tokens
from poolers.base import EOS, INSTRUCTION
from records.errors import UserError
from representation.probes.read_ahead_texts import Quadruple, texts_of

FEWEST = 4  # tokens that follow A


@dataclass(frozen=True)
class Trio:
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
        rows = [tokenizer([rest], f"{a} {TEXT_FIELD}")[0] for a, rest in texts_of(quadruple)]
    except UserError:  # A alone fills max_length
        return None
    length = min(map(len, rows))
    cut = [_cut(row, length) for row in rows]
    alike = {(tuple(row.ids[: _end(row)]), tuple(row.roles)) for row in cut}
    return Trio(*cut) if len(alike) == 1 and length - _end(cut[0]) > FEWEST else None


def _end(row: Tokens) -> int:
    """Where A ends."""
    return max((i + 1 for i, role in enumerate(row.roles) if role == INSTRUCTION), default=0)


def _cut(row: Tokens, length: int) -> Tokens:
    """The first tokens of a row, its EOS kept, `length` in all."""
    tail = 1 if row.roles[-1] == EOS else 0
    body = length - tail
    return Tokens([*row.ids[:body], *row.ids[len(row) - tail :]], [*row.roles[:body], *row.roles[len(row) - tail :]])


def batches(
    found: Sequence[Trio], tokenizer: TextTokenizer, budget: int
) -> Iterator[tuple[list[int], tuple[Batch, Batch, Batch]]]:
    """Yield (numbers of trios, the batches of their q, s+ and s-), which have the same roles and positions."""
    for chunk in by_token_budget([len(t.q) for t in found], budget):
        rows = [found[i] for i in chunk]
        yield (
            chunk,
            (
                tokenizer.batch([t.q for t in rows]),
                tokenizer.batch([t.plus for t in rows]),
                tokenizer.batch([t.minus for t in rows]),
            ),
        )
