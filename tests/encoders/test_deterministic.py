"""deterministic=true: torch's own switch is on while anything is computed, and what has no such form is refused."""

import json
import os

import pytest
import torch

from cli.errors import UserError, explained, guard
from encoders.loading import build_encoder, untrained
from encoders.precision import PRECISIONS, WORKSPACES, be_deterministic
from records.run_folder import RunFolder
from tests.contract.conftest import TEXTS
from tests.triples import write_triples
from training.module import StepModule
from training.run import train_run


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":0:0")
    yield
    be_deterministic(False)


def undetermined(*_):
    """torch's own example of an operation that has no deterministic form, on a CPU neither."""
    return torch.zeros(3).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))


def test_the_switch_goes_on_and_off_with_the_configuration(compose_cell):
    """Jobs of a sweep share a process."""
    for wanted in (True, False):
        cfg = compose_cell("mean", "bi", f"deterministic={str(wanted).lower()}")
        build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
        assert torch.are_deterministic_algorithms_enabled() is torch.backends.cudnn.deterministic is wanted
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == WORKSPACES[0], "set by the first, and harmless to the other"


@pytest.mark.slow
def test_a_run_of_it(compose_cell, tmp_path, monkeypatch):
    """It is on in every step and in the manifest; on a CPU the numbers are those without."""
    data = write_triples(tmp_path / "triples.jsonl")
    words = [f"trainer.{w}" for w in ("max_steps=2", "global_batch_size=8", "checkpoint_every=0", "progress=false")]
    words += ["data=jsonl", f"data.path='{data}'", "data.validation=4", "objective.warmup=1"]
    words += ["logging.tensorboard=false", "logging.csv=false"]
    seen, real = [], StepModule._update
    monkeypatch.setattr(
        StepModule, "_update", lambda *a: seen.append(torch.are_deterministic_algorithms_enabled()) or real(*a)
    )
    heads = []
    for wanted in (True, False):
        cfg = compose_cell("lastlayer", "bi", *words, f"deterministic={str(wanted).lower()}")
        folder = RunFolder(tmp_path / str(wanted))
        train_run(cfg, folder)
        heads.append((folder.path / "head.safetensors").read_bytes())
        manifest = json.loads((folder.path / "manifest.json").read_text())
        assert manifest["config"]["deterministic"] is wanted
    assert seen == [True, True, False, False]
    assert heads[0] == heads[1]


def test_vectors_have_an_identity_of_their_own(compose_cell):
    """What was computed without must not be served from a cache to a run that asks for it."""
    one, other = (untrained(compose_cell("mean", "bi", f"deterministic={w}")) for w in ("true", "false"))
    assert one.fingerprint != other.fingerprint
    assert (one.encode(TEXTS) == other.encode(TEXTS)).all()


def test_what_has_no_deterministic_form_is_one_line(capsys):
    be_deterministic(True)
    with pytest.raises(SystemExit) as left:
        guard(undetermined)
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert said.count("\n") == 1
    assert said.startswith("error: deterministic=true cannot be kept: put_")
    with pytest.raises(UserError, match="accelerator=cpu"), explained():
        undetermined()
    be_deterministic(False)
    undetermined()


def test_another_error_keeps_its_trace():
    with pytest.raises(RuntimeError, match="another"), explained():
        raise RuntimeError("another")
