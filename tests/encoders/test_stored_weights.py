"""Weights rounded once for inference give the very vectors that autocast gives, in every pair of number formats."""

import pytest
import torch

from encoders import loading
from encoders.loading import untrained

TEXTS = ["the sum of two arrays", "type", "a new array of the same shape"]


@pytest.mark.parametrize("autocast", ["null", "fp32", "bf16", "fp16"])
@pytest.mark.parametrize("precision", ["fp32", "mixed", "bf16"])
@pytest.mark.parametrize("pooler", ["mean", "moee"])  # the latter on a mixture of experts
def test_stored_or_cast_in_every_pass(compose_cell, monkeypatch, pooler, precision, autocast):
    cfg = compose_cell(pooler, "bi", f"precision={precision}", f"evaluation.autocast={autocast}")
    stored = untrained(cfg).encode(TEXTS)
    monkeypatch.setattr(loading, "store_as_computed", lambda *_: None)
    usual = untrained(cfg).encode(TEXTS)
    assert torch.equal(torch.from_numpy(stored), torch.from_numpy(usual))
