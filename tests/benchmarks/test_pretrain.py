"""Pretraining: packing, balance of experts; a whole run."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers.models.olmoe.modeling_olmoe import load_balancing_loss_func

from benchmarks.pretrain import EOS, PackedBatches, balance_loss, check, learning_rate_factor, pretrain, train_bpe
from cli.compose import composed, plain
from cli.errors import UserError

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


def test_bpe_round_trips_any_text():
    tokenizer = train_bpe(["the sum of two arrays"] * 3, 300, 64)
    text = "naïve 数 \t\n 12.5e-3 <|endoftext|>"
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.convert_tokens_to_ids(EOS) not in ids


def test_the_loss_is_transformers_own_for_one_layer():
    """Theirs counts choices over all layers together, without the division by k; a layer at a time it is ours."""
    torch.manual_seed(1)
    logits = [torch.randn(50, 8) * 3 for _ in range(3)]
    theirs = [load_balancing_loss_func((x,), 8, 2) / 2 for x in logits]
    assert balance_loss(logits, 2) == pytest.approx(float(torch.stack(theirs).mean()), rel=1e-5)


def test_its_limits():
    everything_to_one = torch.tensor([[100.0, 0, 0, 0]]).repeat(9, 1)
    assert balance_loss([everything_to_one], 1) == pytest.approx(4)
    in_turn = 100 * torch.eye(4).repeat(3, 1)
    assert balance_loss([in_turn], 1) == pytest.approx(1)


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    """A cache of docstrings that all tests here share."""
    return tmp_path_factory.mktemp("docstrings")


@pytest.fixture
def config(texts, tmp_path, monkeypatch):
    """Compose six steps on the docstrings of one small package."""
    monkeypatch.setattr(torch, "compile", lambda f: f)  # a minute of compilation for a second of work

    def compose(place, *words):
        usual = ["data.packages=[omegaconf]", "data.held_out=[pluggy]", "data.development=[]", f"cache_dir='{texts}'"]
        usual += [f"export='{tmp_path / place / 'export'}'", "precision=fp32", "accelerator=cpu", "max_steps=6"]
        usual += ["sequence_length=32", "batch=2", "held_out_percent=20", "warmup=1", "threads=1"]
        usual += [f"model.architecture.{k}" for k in ("hidden_size=32", "num_hidden_layers=1", "intermediate_size=32")]
        return plain(composed("pretrain", [*usual, "model.vocab_size=300", *words]))

    return compose


@pytest.mark.slow
def test_a_run_learns_and_its_export_is_a_function_of_the_seed(config, tmp_path, capsys):
    exports = []
    for place, words in (("one", []), ("two", []), ("other", ["seed=1"])):
        pretrain(config(place, *words))
        exports.append(load_file(tmp_path / place / "export" / "model.safetensors"))
    one, two, other = exports
    assert all(torch.equal(one[k], two[k]) for k in one)
    assert any(not torch.equal(one[k], other[k]) for k in one)
    nats = [float(found) for found in re.findall(r"of 6, ([\d.]+) nats", capsys.readouterr().out)]
    assert nats[0] > nats[5]


def test_the_rate_rises_stays_and_falls():
    objective = {"warmup": 2, "decay": 0.5}
    found = [learning_rate_factor(step, 8, objective) for step in range(8)]
    assert found == [0.5, 1, 1, 1, 1, 0.75, 0.5, 0.25]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sequence_length=2048", "sequence_length=2048 is more than the 1024 positions of the model"),
        ("model=tiny", "model=tiny has weights"),
        ("data=jsonl", "Pretraining reads docstrings, not data=jsonl"),
    ],
)
def test_a_mistake_is_one_line(override, message):
    with pytest.raises(UserError, match=message):
        check(plain(composed("pretrain", [override])))
