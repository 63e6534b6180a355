"""A whole pretraining in miniature: stopped by a gradient that is not finite, by a figure that fails; gone on with."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from cli.compose import composed, plain
from cli.errors import UserError
from training.objectives import clm
from training.objectives.clm import CausalLM
from training.run import run


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    """A cache of docstrings that all tests here share."""
    return tmp_path_factory.mktemp("docstrings")


@pytest.fixture
def config(texts, tmp_path, monkeypatch):
    """Compose six steps on the docstrings of one small package, a checkpoint after every second."""
    monkeypatch.setattr(torch, "compile", lambda f: f)  # a minute of compilation for a second of work

    def compose(place, *words):
        usual = ["experiment=pretrain_tiny", "data.packages=[omegaconf]", "data.held_out=[pluggy]"]
        usual += ["data.development=[]", f"cache_dir='{texts}'", f"runs_dir='{tmp_path / place}'"]
        usual += [f"objective.export='{tmp_path / place / 'export'}'", "precision=fp32", "accelerator=cpu"]
        usual += ["objective.sequence_length=32", "objective.batch=2", "objective.held_out_percent=20"]
        usual += ["objective.warmup=1", "model.vocab_size=300"]
        usual += [f"model.architecture.{k}" for k in ("hidden_size=32", "num_hidden_layers=1", "intermediate_size=32")]
        usual += [f"trainer.{t}" for t in ("max_steps=6", "threads=1", "checkpoint_every=2", "progress=false")]
        return plain(composed("train", [*usual, *words]))

    return compose


def weights(tmp_path, place):
    """The exported model."""
    return load_file(tmp_path / place / "export" / "model.safetensors")


def bad_gradient(self):
    """Lightning's hook after the backward pass: one gradient of step 3 is NaN."""
    if self.global_step == 3:
        next(self.parameters()).grad.view(-1)[0] = float("nan")


@pytest.mark.slow
def test_the_same_command_goes_on_after_a_gradient_that_is_not_finite(config, tmp_path, monkeypatch, capsys):
    run(config("whole", "trainer.progress=lines"))
    assert re.search(r"step 5 of 6, loss \d\.\d{3}, [\d,]+ tokens/s", capsys.readouterr().out)
    with monkeypatch.context() as patch, pytest.raises(UserError, match=r"gradient norm is nan at step 3 \(loss \d"):
        patch.setattr(CausalLM, "on_after_backward", bad_gradient)
        run(config("spoilt"))
    assert not (tmp_path / "spoilt" / "export").exists()
    run(config("spoilt"))
    whole, spoilt = weights(tmp_path, "whole"), weights(tmp_path, "spoilt")
    assert all(torch.equal(whole[k], spoilt[k]) for k in whole)
    assert all(v.isfinite().all() for v in whole.values())


@pytest.mark.slow
def test_what_was_trained_outlives_a_figure_that_fails(config, tmp_path, monkeypatch):
    steps, real = [], CausalLM.training_step

    def counted(self, tick, index):
        steps.append(self.global_step)
        return real(self, tick, index)

    monkeypatch.setattr(CausalLM, "training_step", counted)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(clm, "unigram_bits_per_byte", lambda *_: 1 / 0)
        run(config("run"))
    assert steps == [0, 1, 2, 3, 4, 5]
    run(config("run"))
    assert steps == [0, 1, 2, 3, 4, 5], "no step was run again"
    run(config("whole"))
    whole, continued = weights(tmp_path, "whole"), weights(tmp_path, "run")
    assert all(torch.equal(whole[k], continued[k]) for k in whole)


@pytest.mark.slow
def test_a_checkpoint_of_another_configuration_is_refused(config):
    """Its weights would be exported under figures that are not theirs."""
    run(config("run"))
    with pytest.raises(UserError, match=r"another configuration \(objective.lr: 0.003 -> 0.001\)"):
        run(config("run", "objective.lr=1e-3"))
    run(config("run", "objective.lr=1e-3", "resume=false"))


def test_no_text_is_refused(config):
    with pytest.raises(UserError, match=r"Of 0 docstrings objective.held_out_percent=20 leaves 0 to train on and 0"):
        run(config("none", "data.packages=[]"))
