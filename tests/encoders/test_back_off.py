"""Encoding with too little memory: a decoder that really raises above a size, and what a user is told."""

import numpy as np
import pytest
import torch

from cli.errors import UserError
from encoders.loading import build_encoder, build_tokenizer
from encoders.precision import PRECISIONS
from encoders.text_encoder import TextEncoder

WORDS = ["the", "sum", "of", "two", "arrays"]
TEXTS = [" ".join(WORDS[(i + k) % 5] for k in range(1 + 3 * i % 17)) for i in range(40)]
GPU = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def host_error() -> RuntimeError:
    """What torch really raises where host memory is short."""
    try:
        torch.empty(10**15)
    except RuntimeError as error:
        return error
    raise AssertionError("a petabyte was allocated")


@pytest.fixture(autouse=True)
def _nothing_to_free(monkeypatch):
    """Memory is never short here: to go through all objects at every halving takes most of the time of these tests."""
    monkeypatch.setattr("encoders.text_encoder.gc.collect", lambda: 0)


@pytest.fixture
def text_encoder(compose_cell):
    """Make an encoder whose decoder takes at most `places` places in a batch: text_encoder(40, GPU)."""

    def make(places=None, error=GPU, budget=256) -> TextEncoder:
        cfg = compose_cell("mean", "bi")
        encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
        sizes = []

        def refuse(_module, _args, kwargs):
            sizes.append(kwargs["input_ids"].numel())
            if places is not None and sizes[-1] > places:
                raise error

        encoder.backbone.register_forward_pre_hook(refuse, with_kwargs=True)
        made = TextEncoder(encoder, build_tokenizer(cfg, 128), "", budget)
        made.sizes = sizes
        return made

    return make


@pytest.mark.parametrize("error", [GPU, host_error()], ids=["gpu", "host"])
def test_vectors_are_those_of_a_machine_with_more_memory(text_encoder, error, capsys):
    wanted = text_encoder().encode(TEXTS)
    short = text_encoder(90, error)
    np.testing.assert_allclose(short.encode(TEXTS), wanted, atol=2e-6)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Out of memory")]
    halvings = [size for size in short.sizes if size > 90]
    assert len(said) == len(halvings) > 0
    assert all("; going on with token_budget=" in line for line in said)
    assert short.meter.texts == len(set(TEXTS))
    tried = len(short.sizes)
    short.encode(TEXTS)
    assert max(short.sizes[tried:]) <= 90, "the smaller budget is remembered"


def test_a_single_text_that_does_not_fit_is_an_error_of_one_line(text_encoder):
    with pytest.raises(UserError, match=r"^Out of memory on a single text of \d+ tokens\. Lower max_length"):
        text_encoder(5).encode(TEXTS)


def test_what_was_stopped_goes_on_with_the_same_numbers(text_encoder):
    encoder, distinct = text_encoder(budget=64), list(dict.fromkeys(TEXTS))
    parts = list(encoder.parts(distinct))
    for done in range(len(parts)):
        seen = {i for indices, _ in parts[:done] for i in indices}
        left = [i for i in range(len(distinct)) if i not in seen]
        rest = list(encoder.parts([distinct[i] for i in left]))
        assert [[left[i] for i in indices] for indices, _ in rest] == [indices for indices, _ in parts[done:]]
        assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(rest, parts[done:], strict=True))
