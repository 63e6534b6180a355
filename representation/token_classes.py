"""Classes of the tokens of a text: BOS, instruction, content and function words, punctuation, EOS."""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from encoders.tokens import Batch
from poolers.shared.base import BOS, EOS, INSTRUCTION, LANDMARK, PAD, PLACEHOLDER

CLASSES = ("BOS", "instruction", "content word", "function word", "punctuation", "EOS", "padding")
FIRST, ASKED, CONTENT, FUNCTION, PUNCTUATION, LAST, FILLED = range(len(CLASSES))
OF_ROLE = {PAD: FILLED, BOS: FIRST, INSTRUCTION: ASKED, EOS: LAST, LANDMARK: LAST, PLACEHOLDER: ASKED}
SPACE = ("\u0120", "\u2581", "\u010a")  # how vocabularies write a space before a token, or the end of a line
LISTED = """
a an the this that these those some any each every all both no not and or but nor if then else than so as of at by
for from in into on onto to with without within over under between through during before after above below up down
out off about against per via is are was were be been being am do does did have has had having can could may might
must shall should will would it its he she they them his her you your we our i me my us who whom whose which what
when where why how there here such only same other another also
"""
FUNCTION_WORDS = frozenset(LISTED.split())


@dataclass(frozen=True)
class Piece:
    """An entry of the vocabulary: whether it holds a letter or digit, whether it begins a word, and its letters."""

    is_word: bool
    begins: bool
    letters: str


class TokenClasses:
    """Classes of the tokens of a decoder's tokenizer, whose vocabulary marks the beginnings of words (BPE)."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        self.piece = cache(self._piece)

    def __call__(self, batch: Batch) -> Tensor:
        """Return [B, T] int64: the number of each token's class in `CLASSES`.

        A token without letter or digit is punctuation, white space too. A function word is a whole word of a closed
        list of English; pieces of longer words are content.
        """
        rows = []
        for ids, roles in zip(batch.input_ids.tolist(), batch.roles.tolist(), strict=True):
            pieces = [None if role in OF_ROLE else self.piece(i) for i, role in zip(ids, roles, strict=True)]
            around = zip([None, *pieces], pieces, [*pieces[1:], None], roles, strict=False)
            rows.append([kind_of(p, before, after) if p else OF_ROLE[role] for before, p, after, role in around])
        return torch.tensor(rows, device=batch.roles.device)

    def _piece(self, token: int) -> Piece:
        written = str(self.tokenizer.convert_ids_to_tokens(token))
        text = self.tokenizer.convert_tokens_to_string([written])
        return Piece(any(c.isalnum() for c in text), written.startswith(SPACE), text.strip().lower())


def kind_of(piece: Piece, before: Piece | None, after: Piece | None) -> int:
    """Return content word, function word or punctuation. before, after: its neighbours in the text, if any."""
    if not piece.is_word:
        return PUNCTUATION
    begins = piece.begins or before is None or not before.is_word
    ends = after is None or after.begins or not after.is_word
    return FUNCTION if begins and ends and piece.letters in FUNCTION_WORDS else CONTENT


def relative_entropy(weights: Tensor, keys: Tensor | int) -> Tensor:
    """Return the entropy of weights [..., K] over that of attention spread evenly: 1 is even, 0 is all on one key.

    keys: how many keys there are, a number or a tensor that fits [...]; of one key alone it is 1.
    """
    entropy = torch.special.entr(weights.double()).sum(dim=-1)
    most = torch.log(torch.as_tensor(keys, dtype=torch.float64, device=weights.device))
    return torch.where(most > 0, entropy / most.clamp(min=1e-12), torch.ones_like(entropy))
