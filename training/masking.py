"""Which tokens MNTP masks, and by what: a function of (seed, step) and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerBase

from encoders.tokens import Tokens
from poolers.base import TEXT
from records.errors import UserError
from records.streams import stream_seed

UNDERSCORE = "_"  # what LLM2Vec takes for decoders that were trained without a mask token


@dataclass(frozen=True)
class Masked:
    """A text with tokens replaced. places: of the masked tokens; targets: what stood there."""

    tokens: Tokens
    places: list[int]
    targets: list[int]


@dataclass(frozen=True)
class Masking:
    """share: of the tokens that can be predicted. by_mask, by_random: of the masked ones; the rest stay as they are.

    mask: the mask token's id. others: [W] ids that a random replacement is drawn from, uniformly.
    """

    mask: int
    others: np.ndarray
    share: float
    by_mask: float
    by_random: float
    seed: int

    def __call__(self, rows: Sequence[Tokens], *position: int | str) -> list[Masked]:
        """Mask each row. position: the step, or a word; with the seed it decides what is drawn.

        Each token of the text that has a token before it is masked with probability `share`, independently (Devlin et
        al. 2018, arXiv 1810.04805, appendix A.1, for the replacements). BOS, EOS and instruction are never masked.
        """
        seed = stream_seed(self.seed, "mask", *position)  # type: ignore[arg-type]  # words count as numbers do
        random = np.random.default_rng(seed)
        return [self._masked(row, random) for row in rows]

    def _masked(self, row: Tokens, random: np.random.Generator) -> Masked:
        chosen, how, other = (
            random.random(len(row)),
            random.random(len(row)),
            random.integers(len(self.others), size=len(row)),
        )
        ids = list(row.ids)
        places = [i for i in range(1, len(row)) if row.roles[i] == TEXT and chosen[i] < self.share]
        for i in places:
            if how[i] < self.by_mask:
                ids[i] = self.mask
            elif how[i] < self.by_mask + self.by_random:
                ids[i] = int(self.others[other[i]])
        return Masked(Tokens(ids, row.roles), places, [row.ids[i] for i in places])


def masking(objective: dict, tokenizer: PreTrainedTokenizerBase, vocabulary: int, seed: int) -> Masking:
    """Return the masking of `objective`. vocabulary: rows of the base's embeddings.

    Raises `UserError` for a mask token that is none of the vocabulary, and for shares above one.
    """
    by_mask, by_random = objective["replaced_by_mask"], objective["replaced_by_random"]
    if by_mask + by_random > 1:
        raise UserError(
            f"objective.replaced_by_mask={by_mask} and objective.replaced_by_random={by_random} add up to more than 1. "
            "Lower one of them."
        )
    special = set(tokenizer.all_special_ids)
    others = np.array([i for i in range(min(len(tokenizer), vocabulary)) if i not in special])
    mask = mask_id(objective["mask_token"], tokenizer, vocabulary)
    return Masking(mask, others, objective["mask_share"], by_mask, by_random, seed)


def mask_id(token: str | None, tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> int:
    """Return the id of `token`; of None: the tokenizer's own mask token, or that of "_" where it has none."""
    word = token or tokenizer.mask_token or UNDERSCORE
    found = tokenizer.get_vocab().get(str(word))
    if found is None or found >= vocabulary:
        raise UserError(
            f"objective.mask_token={word} is no token of the base's vocabulary. Give one that is, such as '_' or '~'."
        )
    return found
