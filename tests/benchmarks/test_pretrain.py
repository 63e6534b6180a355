"""Pretraining: packing, balance of experts; a whole run."""

import re

import pytest
import torch
from safetensors.torch import load_file
from transformers.models.olmoe.modeling_olmoe import load_balancing_loss_func

from benchmarks.pretrain import PackedBatches, balance_loss, pretrain
from cli.compose import composed, plain

DOCUMENTS = [[5, 6, 7], [8], [9, 10, 11, 12], [13, 14]]


def test_an_epoch_is_the_documents_end_to_end():
    packed = PackedBatches(DOCUMENTS, eos=1, length=2, batch=2, seed=0)
    flat = packed.epoch(0).flatten().tolist()
    assert packed.tokens_an_epoch == 14
    assert len(flat) == 12, "what does not fill a batch is left out"
    text = " ".join(map(str, flat))
    assert sum(" ".join(map(str, [*d, 1])) in text for d in DOCUMENTS) >= 3


def test_a_step_is_a_function_of_its_number():
    one, other = (PackedBatches(DOCUMENTS, 1, 2, 2, seed=0) for _ in range(2))
    steps = [one.batch(s) for s in range(9)]
    assert torch.equal(other.batch(8), steps[8])
    assert torch.equal(other.batch(2), steps[2])
    assert any(not torch.equal(PackedBatches(DOCUMENTS, 1, 2, 2, seed=1).batch(s), steps[s]) for s in range(3))


def test_the_loss_is_transformers_own_for_one_layer():
    """Theirs counts choices over all layers together, without the division by k; a layer at a time it is ours."""
    torch.manual_seed(1)
    logits = [torch.randn(50, 8) * 3 for _ in range(3)]
    theirs = [load_balancing_loss_func((x,), 8, 2) / 2 for x in logits]
    assert balance_loss(logits, 2) == pytest.approx(float(torch.stack(theirs).mean()), rel=1e-5)


@pytest.mark.slow
def test_a_run_learns_and_its_export_is_a_function_of_the_seed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch, "compile", lambda f: f)  # a minute of compilation for a second of work
    usual = ["data.packages=[omegaconf]", "data.held_out=[pluggy]", "data.development=[]", f"cache_dir='{tmp_path}'"]
    usual += ["precision=fp32", "accelerator=cpu", "max_steps=6", "model.vocab_size=300", "threads=1", "warmup=1"]
    usual += [f"model.architecture.{k}" for k in ("hidden_size=32", "num_hidden_layers=1", "intermediate_size=32")]
    exports = []
    for seed in (0, 0, 1):
        words = ["sequence_length=32", "batch=2", "held_out_percent=20", f"seed={seed}", f"export='{tmp_path}/out'"]
        pretrain(plain(composed("pretrain", [*usual, *words])))
        exports.append(load_file(tmp_path / "out" / "model.safetensors"))
    one, two, other = exports
    assert all(torch.equal(one[k], two[k]) for k in one)
    assert any(not torch.equal(one[k], other[k]) for k in one)
    nats = [float(found) for found in re.findall(r"of 6, ([\d.]+) nats", capsys.readouterr().out)]
    assert nats[0] > nats[5]
