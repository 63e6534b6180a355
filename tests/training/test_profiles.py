"""reference_fault=all is the sum of the faults of the published code."""

from functools import cache

import pytest

from cli.compose import composed, flat, options, plain

NAMES = sorted(options("reference_fault"))
NOT_OF_THE_CODE = {"isolated_attention", "one_source", "all"}  # two are turned round


@cache
def config(cell, *words):
    return flat(plain(composed("train", [f"design={cell}", *words])))


def changes(cell, *words):
    usual, now = config(cell), config(cell, *words)
    return {k: now.get(k) for k in now.keys() | usual.keys() if now.get(k) != usual.get(k)}


# each head under the attention that the code treats apart
@pytest.mark.parametrize("cell", ["model2", "model4", "model5"])
def test_all_is_the_sum_of_the_divergences(cell):
    summed = {}
    for name in set(NAMES) - NOT_OF_THE_CODE:
        summed |= changes(cell, f"reference_fault={name}")
    summed.pop("trainer.devices", None)  # `unsynchronised` needs two processes to show
    if cell in ("model4", "model5"):  # the code's lastlayer head reads all tokens where attention is bidirectional
        summed.pop("reference_fault.lastlayer_tokens")
        if cell == "model4":
            summed.pop("pooler.tokens")
    assert changes(cell, "reference_fault=all") == summed
