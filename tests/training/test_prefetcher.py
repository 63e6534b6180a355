"""The next step's tokens, made while a step runs: the same ones, once, and errors where they belong."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from transformers import AutoTokenizer

from cli.errors import UserError
from encoders.tokens import TextTokenizer
from training.module import Prefetcher


def test_each_step_is_made_once_and_none_beyond_the_last():
    asked = []
    prefetcher = Prefetcher(lambda step: asked.append(step) or step * step, steps=5)
    assert [prefetcher.take(step) for step in range(2, 5)] == [4, 9, 16]
    assert asked == [2, 3, 4]


def test_an_error_is_raised_at_its_own_step():
    def make(step):
        if step == 2:
            raise UserError("A text is empty.")
        return step

    prefetcher = Prefetcher(make, steps=4)
    assert [prefetcher.take(0), prefetcher.take(1)] == [0, 1]
    with pytest.raises(UserError, match="empty"):
        prefetcher.take(2)
    assert prefetcher.take(3) == 3


class Watched:
    """A real tokenizer that tells whether a call came while another was at work."""

    def __init__(self, tokenizer):
        self.tokenizer, self.busy, self.overlapped = tokenizer, False, False

    def __call__(self, *args, **kwargs):
        self.overlapped |= self.busy
        self.busy = True
        time.sleep(0.001)
        found = self.tokenizer(*args, **kwargs)
        self.busy = False
        return found

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)


def test_two_threads_tokenise_one_after_the_other(small_model):
    """A validation falls into the time in which the next step's texts are tokenised."""
    watched = Watched(AutoTokenizer.from_pretrained(small_model))
    rules = TextTokenizer(watched, 32)
    texts = [f"the sum of {i} arrays" for i in range(50)]
    alone = {instruction: rules(texts, instruction) for instruction in (None, "find the sum")}
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda i: (i, rules(texts, i)), [None, "find the sum"] * 10))
    assert not watched.overlapped
    assert all(rows == alone[instruction] for instruction, rows in both)
