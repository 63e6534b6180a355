"""A loss that is finite and too large stops a run of any objective; `replay=` takes that very step again."""

import re

import pytest
import torch

from benchmarks.chaos.commands import commands, write_inputs
from cli.compose import composed, plain
from cli.errors import UserError
from cli.quoting import train_words
from corpora.readers import of_percent
from records.run_folder import RunFolder
from training.loop import LAST
from training.module import StepModule
from training.objectives.clm import CausalLM
from training.objectives.objective import objective_names
from training.refused_step import REFUSED, read_step
from training.run import build, replay, run, state_of, train_run

STEP = 2
NUMBER = r"([\d.]+(?:e-?\d+)?)"
KINDS = ("infonce", "distil", "mixed", "simcse", "mntp", "next_token", "clm", "frozen")


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a base of two layers, pairs, graded pairs and texts."""
    folder = tmp_path_factory.mktemp("work")
    write_inputs(folder)
    return folder


@pytest.fixture
def limited(monkeypatch):
    """The loss limit is 0.0001 at step 2, and there is none at the others."""
    monkeypatch.setattr(torch, "compile", lambda f: f)  # a minute of compilation for a second of work
    for kind in (StepModule, CausalLM):

        def limited_step(self, tick, index, real=kind.training_step):
            self.cfg["trainer"]["loss_limit"] = 1e-4 if self.global_step == STEP else None
            return real(self, tick, index)

        monkeypatch.setattr(kind, "training_step", limited_step)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("limited")
def test_a_step_above_the_limit_is_kept_and_replayed(kind, work, tmp_path, capsys):
    (command,) = [command for command in commands(work) if command.name == kind]
    cfg = plain(composed("train", [word.replace("{place}", str(tmp_path)) for word in command.words[1:]]))
    folder = tmp_path / "runs" / "pretrain_tiny" / "clm" / "seed=0" if kind == "clm" else tmp_path / "run"
    line = rf"The loss is {NUMBER}, above trainer\.loss_limit=0\.0001, at step {STEP} \(.*gradient norm {NUMBER}\)\. "
    with pytest.raises(UserError, match=line) as refused:
        run(cfg) if kind == "clm" else train_run(cfg, RunFolder(folder))
    loss, norm = map(float, re.search(line, str(refused.value)).groups())
    assert f"replay={folder} runs that step alone" in str(refused.value)
    checkpoint, state = torch.load(folder / LAST, weights_only=True), read_step(folder)
    assert checkpoint["global_step"] == state["step"] == STEP
    for name, weights in state["trained"].items():
        assert torch.equal(checkpoint["state_dict"][f"model.{name}" if kind == "clm" else name], weights), name
    capsys.readouterr()
    run(plain(composed("train", train_words([f"replay={folder}"]))))
    said = re.search(rf"Step {STEP}: .*; loss {NUMBER}, gradient norm {NUMBER}\.\n", capsys.readouterr().out)
    assert [float(number) for number in said.groups()] == pytest.approx([loss, norm], rel=1e-3)
    assert float(said[1]) == pytest.approx(loss, rel=1e-5)
    assert (folder / REFUSED).exists()


def contents(objective, text):
    """Two contents of a file of texts of which the first examples have the same names and other tokens."""
    if objective == "mntp":
        return text, text.replace("a new", "new a")
    lines = text.splitlines()
    held_out = [line for line in lines if of_percent(line, 30)][:2]
    short = [line for line in (" ".join(["index"] * n) for n in (4, 9, 12, 19)) if not of_percent(line, 30)]
    return tuple("\n".join([first, " ".join(lines), *held_out]) for first in (short[0], short[-1]))


@pytest.mark.parametrize("objective", ["mntp", "next_token"])
def test_a_step_whose_data_changed_is_refused(objective, compose_cell, headed_model, lines, tmp_path):
    """A block of packed text has a number for a name, a window that of its document: neither tells the tokens."""
    (one, other), place = contents(objective, lines.read_text()), tmp_path / "lines.txt"
    words = {"mntp": ["attn=bi", "objective.packed=true"], "next_token": ["objective.held_out_percent=30"]}[objective]
    more = [f"objective={objective}", "data=text", f"data.path='{place}'", "data.validation=8", *words]
    more += [f"model.path={headed_model}", "max_length=8", "trainer.global_batch_size=4"]
    cfg, states = compose_cell("mean", "causal", *more), []
    for content in (one, other, one):
        place.write_text(content)
        module = build(cfg, tmp_path)[0]
        states.append(state_of(module, 0) | {"step": 0})
    assert [x["query"] for x in states[0]["examples"]] == [x["query"] for x in states[1]["examples"]]
    assert replay(module, states[0])[0].startswith("Step 0: 4 examples")
    with pytest.raises(UserError, match="The examples of the step are others now"):
        replay(module, states[1])


def test_every_objective_is_replayed():
    assert set(objective_names()) <= set(KINDS)
