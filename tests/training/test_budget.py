"""token_budget=null: what is found where memory ends at a number of tokens, and what a trial leaves behind."""

import pytest
import torch
from safetensors.torch import load_file

from encoders.attention.switch import parts
from encoders.limits import SHARED_GPU
from encoders.mixse import mixture_of
from records.manifest import read_manifest
from tests.triples import quick_run
from training import budget
from training.budget import LEAST, choose, fits, largest
from training.run import build, train_run


@pytest.fixture
def cell(compose_cell, pairs):
    words = [*quick_run(pairs, 4, checkpoint=2), "trainer.gradcache=true"]
    return lambda tokens: compose_cell("multilayer", "bi", *words, f"token_budget={tokens}")


@pytest.mark.parametrize("limit", [0, 256, 300, 4095, 4096, 20_000, 10**6])
def test_the_largest_power_of_two_that_fits_is_found(limit):
    powers = [2**k for k in range(8, 17) if 2**k <= limit]
    assert largest(lambda tokens: tokens <= limit) == max(powers, default=LEAST)
    assert largest(lambda tokens: tokens <= limit, 1024) == max((p for p in powers if p <= 1024), default=LEAST)


@pytest.mark.parametrize(("devices", "wanted"), [(1, budget.MOST), (2, 16_384), (8, 4096), (1000, LEAST)])
def test_each_of_several_processes_has_a_chunk_of_the_first_step(devices, wanted):
    assert budget.most({"devices": devices, "num_nodes": 1}, [[0] * 80] * 500) == wanted


def test_a_trial_leaves_nothing_behind(cell, tmp_path):
    module, _, setup = build(cell("null"), tmp_path)
    sizes = []

    def refuse(_module, _args, kwargs):
        sizes.append(kwargs["input_ids"].numel())
        if sizes[-1] > 500:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    setup.encoder.backbone.register_forward_pre_hook(refuse, with_kwargs=True)
    before = torch.get_rng_state(), setup.work.plan, module.prepared(0)[0]
    assert (fits(module, 500), fits(module, 700)) == (True, False)
    assert 400 < sizes[0] <= 500 < sizes[-1] <= 700, "a chunk is filled"
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (setup.work.plan, module.prepared(0)[0]) == before[1:]
    assert all(p.grad is None for p in module.parameters())


def test_a_trial_of_a_mixture_lets_its_graph_go(compose_cell, pairs, tmp_path):
    """Each sublayer holds the last weights of its experts, and they hold the graph of a pass that did not end."""
    words = [*quick_run(pairs, 2), "adapter=mixse", "adapter.experts=2", "adapter.trains=experts", "token_budget=null"]
    module, _, setup = build(compose_cell("mean", "bi", *words), tmp_path)

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    parts(setup.encoder.backbone)[0][-1].register_forward_pre_hook(full)
    assert not fits(module, 500)
    assert all(sublayer.weights is None for sublayer in mixture_of(setup.encoder.backbone).sublayers)


@pytest.mark.slow
def test_a_run_keeps_what_it_found_and_shares_it_with_its_study(cell, tmp_path, monkeypatch, power_cut):
    run, fixed, new = (tmp_path / name / "cell" / "seed0" for name in ("study", "fixed", "new"))
    monkeypatch.setattr(budget, "_has_a_gpu", lambda module: True)
    monkeypatch.setattr(budget, "fits", lambda module, tokens: tokens <= 700)
    with power_cut(3):
        train_run(cell("null"), run)
    monkeypatch.setattr(budget, "fits", lambda module, tokens: tokens <= 300)
    train_run(cell("null"), run)
    train_run(cell(512), fixed)
    one, other = (load_file(folder / "adapter" / "adapter_model.safetensors") for folder in (run, fixed))
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert [read_manifest(folder)["token_budget"] for folder in (run, fixed)] == [512, 512]
    module = build(cell("null"), run)[0]
    monkeypatch.setattr(budget, "fits", lambda module, tokens: tokens < 600)
    assert choose(module, run) == 512, "that of the study, without room to spare"
    assert choose(module, new) == 256
    monkeypatch.undo()
    monkeypatch.setenv(SHARED_GPU, "true")
    assert choose(module, new) == 16_384
