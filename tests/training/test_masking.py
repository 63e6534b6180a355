"""Masks and the shift, literally; shares by statistics."""

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from cli.errors import UserError
from encoders.tokens import Batch, Tokens
from poolers.shared.base import BOS, EOS, INSTRUCTION, PAD, TEXT
from training.objectives.masking import Masked, Masking, before, mask_id, masking

OTHERS = np.array([7])  # one id alone, so that a random replacement is known


def masks(share=1.0, by_mask=1.0, by_random=0.0, seed=0):
    return Masking(2, OTHERS, share, by_mask, by_random, seed)


def test_every_token_that_has_one_before_it_and_is_text():
    rows = [
        Tokens([10, 11, 12, 1], [TEXT, TEXT, TEXT, EOS]),
        Tokens([3, 20, 21, 22, 1], [BOS, INSTRUCTION, TEXT, TEXT, EOS]),
        Tokens([30, 1], [TEXT, EOS]),
    ]
    one, two, three = masks()(rows, 0)
    assert (one.tokens.ids, one.places, one.targets) == ([10, 2, 2, 1], [1, 2], [11, 12])
    assert (two.tokens.ids, two.places, two.targets) == ([3, 20, 2, 2, 1], [2, 3], [21, 22])
    assert (three.tokens.ids, three.places) == ([30, 1], []), "nothing stands before the first token"
    assert rows[0].ids == [10, 11, 12, 1], "the row itself stays"


def test_replacements_are_mask_other_or_the_token_itself():
    row = Tokens([10, 11, 12, 1], [TEXT, TEXT, TEXT, EOS])
    assert masks(by_mask=0.0, by_random=1.0)([row], 0)[0].tokens.ids == [10, 7, 7, 1]
    kept = masks(by_mask=0.0)([row], 0)[0]
    assert (kept.tokens.ids, kept.places, kept.targets) == ([10, 11, 12, 1], [1, 2], [11, 12])


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_state_before_a_token_predicts_it(side):
    """Text 0: tokens 1 and 3 of 4 are masked; text 1: token 1 of 2; the batch is 4 wide."""
    rows = [Masked(Tokens([5] * 4, [TEXT] * 4), [1, 3], [8, 9]), Masked(Tokens([5] * 2, [TEXT] * 2), [1], [6])]
    second = [TEXT, TEXT, PAD, PAD] if side == "right" else [PAD, PAD, TEXT, TEXT]
    roles = torch.tensor([[TEXT] * 4, second])
    text, column = before(Batch(roles, roles, roles), rows)
    assert text.tolist() == [0, 0, 1]
    assert column.tolist() == ([0, 2, 0] if side == "right" else [0, 2, 2])


@pytest.mark.parametrize(("share", "by_mask", "by_random"), [(0.2, 0.8, 0.1), (0.8, 1.0, 0.0)])
def test_shares(share, by_mask, by_random):
    length, rows = 101, 400
    row = Tokens([10] * length, [TEXT] * length)
    made = masks(share, by_mask, by_random)([row] * rows, 3)
    ids = np.array([m.tokens.ids[i] for m in made for i in m.places])
    n = rows * (length - 1)
    assert abs(len(ids) / n - share) < 4 * (share * (1 - share) / n) ** 0.5
    for value, p in ((2, by_mask), (7, by_random), (10, 1 - by_mask - by_random)):
        assert abs((ids == value).mean() - p) <= 4 * (max(p * (1 - p), 0) / len(ids)) ** 0.5 + 1e-12


def test_masks_are_a_function_of_seed_and_step():
    row = Tokens([10] * 50, [TEXT] * 50)
    places = [masks(0.3, seed=seed)([row], step)[0].places for seed, step in ((0, 1), (0, 1), (0, 2), (1, 1))]
    assert places[0] == places[1]
    assert places[0] != places[2]
    assert places[0] != places[3]


def test_mask_token_by_name_by_the_tokenizer_or_the_underscore(small_model):
    tokenizer = AutoTokenizer.from_pretrained(small_model)
    assert mask_id(None, tokenizer, 320) == tokenizer.mask_token_id
    assert mask_id("_", tokenizer, 320) == tokenizer.convert_tokens_to_ids("_")
    tokenizer.mask_token = None
    assert mask_id(None, tokenizer, 320) == tokenizer.convert_tokens_to_ids("_")
    with pytest.raises(UserError, match="mask_token=<blank> is no token"):
        mask_id("<blank>", tokenizer, 320)


def test_random_replacements_are_no_special_tokens_and_shares_add_up(small_model):
    tokenizer = AutoTokenizer.from_pretrained(small_model)
    objective = {"mask_token": None, "mask_share": 0.2, "replaced_by_mask": 0.8, "replaced_by_random": 0.1}
    others = masking(objective, tokenizer, 320, 0).others
    assert not set(tokenizer.all_special_ids) & set(others.tolist())
    assert len(others) == 320 - len(set(tokenizer.all_special_ids))
    with pytest.raises(UserError, match="add up to more than 1"):
        masking({**objective, "replaced_by_random": 0.3}, tokenizer, 320, 0)
