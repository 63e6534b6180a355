"""Random streams are separate: what is changed in one design moves nothing that another design draws."""

import random

import numpy as np
import pytest
import torch

from records.manifest import stream_seeds
from tests.cells import CELLS, reads_routers
from tests.contract.conftest import recorded

pytestmark = pytest.mark.slow  # trains every cell
FIRST = CELLS[0]  # what all other cells are compared with
ROUTED = next(c for c in CELLS if reads_routers(c[0]))
HEADED = ("multilayer", "bi")


def same(one, other):
    """Whether two sets of named tensors are bit-equal."""
    assert one.keys() == other.keys()
    assert one
    return all(torch.equal(one[n], other[n]) for n in one)


@pytest.fixture(scope="module")
def again(cell, tmp_path_factory):
    """Train the headed cell once more, with changes."""
    return lambda changes: recorded(cell(*HEADED, changes), tmp_path_factory.mktemp("again"))


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_every_cell_sees_the_same_batches_masks_and_adapter(run_of, pooler, attn):
    first = ROUTED if reads_routers(pooler) else FIRST  # a mixture of experts has other linear layers
    one, other = run_of(*first), run_of(pooler, attn)
    assert run_of(*FIRST).manifest["batch_order_sha256"] == other.manifest["batch_order_sha256"]
    linear = 4 if reads_routers(pooler) else 7
    assert len(one.masks) == 2 * 3 * linear, "steps x layers x linear layers with LoRA, one chunk a step"
    assert len(set(one.masks)) == len(one.masks), "every layer and step draws a mask of its own"
    assert one.masks == other.masks
    assert same(one.adapter_start(), other.adapter_start())


def test_another_seed_changes_every_stream(run_of, again):
    one, other = run_of(*HEADED), again({"seed": 1})
    assert one.manifest["batch_order_sha256"] != other.manifest["batch_order_sha256"]
    assert not set(one.masks) & set(other.masks)
    starts = [run.copies[0].state_dict() for run in (one, other)]
    drawn = [n for n in starts[0] if "lora_A" in n] + ["pooler.head.queries", "pooler.layer_weights"]
    assert not [n for n in drawn if torch.equal(starts[0][n], starts[1][n])]


def test_the_seeds_of_the_streams_are_all_different():
    seeds = [*stream_seeds(0).values(), *stream_seeds(1).values()]
    assert len(set(seeds)) == len(seeds) == 8


def test_evaluation_and_foreign_draws_move_nothing(run_of, again):
    """Validated after every step, and begun from other states of the global generators: bit-equal to the end."""
    torch.manual_seed(99)
    np.random.seed(99)
    random.seed(99)
    one, other = run_of(*HEADED), again({"trainer.validate_every": 1})
    assert same(one.trained, other.trained)
    assert one.masks == other.masks


def test_another_adapter_moves_neither_batches_nor_head(run_of, again):
    one, other = run_of(*HEADED), again({"lora.r": 4})
    assert one.manifest["batch_order_sha256"] == other.manifest["batch_order_sha256"]
    assert same(one.copies[0].pooler.state_dict(), other.copies[0].pooler.state_dict())
    assert one.masks == other.masks


def test_a_stream_is_a_function_of_the_seed(run_of, again):
    one, other = run_of(*HEADED), again({})
    assert same(one.trained, other.trained)
