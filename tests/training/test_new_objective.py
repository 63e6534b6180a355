"""A fourth objective: one file and one YAML, added to a copy of the tree, are all that check=true and a run need."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.triples import write_triples

ROOT = Path(__file__).resolve().parents[2]
TREE = ["cli", "conf", "corpora", "encoders", "poolers", "records", "training", "train.py"]
YAML = """# Hinge on the cosines of a query with its positive and with the positive of the next example.
name: hinge
margin: 0.2
lr: 2e-3
head_lr: null
warmup: 1
decay_epochs: null
weight_decay: 0.01
"""
CODE = '''"""Objective `hinge`: a query is nearer to its positive than to the next one by a margin."""

from typing import ClassVar

from torch.nn import functional as F

from cli.errors import UserError
from cli.limits import real
from corpora.readers import read_triples
from training.objectives.objective import Objective
from training.validation import Validation


class Hinge(Objective):
    """max(0, margin - cos(query, positive) + cos(query, next positive)), the mean over queries."""

    limits: ClassVar = {"objective.margin": real(0)}
    unit = "triples"
    read = staticmethod(read_triples)

    def __init__(self, setup, examples, held_out):
        self.work, self.examples, self.margin = setup.work, examples, setup.config["objective"]["margin"]
        self.validation = Validation(setup.text_encoder(), held_out, None, setup.run)
        self.counts = {"active": 0}

    @staticmethod
    def check(config):
        """Refuse a batch without a next example."""
        if config["trainer"]["global_batch_size"] < 2:
            raise UserError("objective=hinge compares examples. Give trainer.global_batch_size=2 or more.")

    @staticmethod
    def texts_per_example(objective):
        """Query and positive."""
        return 2

    def lay_out(self, numbers, step):
        """Queries, then positives."""
        chosen = [self.examples[i] for i in numbers]
        texts = [("", t.query) for t in chosen] + [("", t.positive) for t in chosen]
        return len(chosen), self.work.tokenizer.pairs(texts)

    def backward(self, layout, rows, step):
        """The loss of the step."""

        def loss_of(vectors):
            unit = F.normalize(vectors, dim=-1)
            queries, positives = unit[:layout], unit[layout:]
            wrong = (queries * positives.roll(-1, 0)).sum(dim=1) - (queries * positives).sum(dim=1)
            losses = F.relu(self.margin + wrong)
            self.counts["active"] += int((losses > 0).sum())
            return losses.mean()

        return self.work.backward(rows, loss_of, step)

    def held_out_rows(self):
        """The rows of the validation."""
        return self.validation.rows()

    def held_out_scores(self):
        """nDCG@10."""
        return {"nDCG@10": self.validation.score()}

    def collapse(self, loss, before, after):
        """Chance is a loss of the margin."""
        return None if loss < self.margin else f"loss {loss:.3f} is not below the margin: nothing was learned"

    def facts(self, steps):
        """How often a query was not far enough."""
        return {"active": self.counts["active"]}
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree with one file and one YAML more."""
    folder = tmp_path_factory.mktemp("tree")
    for name in TREE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    (folder / "training" / "objectives" / "hinge.py").write_text(CODE)
    (folder / "conf" / "objective" / "hinge.yaml").write_text(YAML)
    write_triples(folder / "pairs.jsonl")
    return folder


@pytest.fixture(scope="module")
def command(tree, small_model):
    """Run train.py in the copy: (exit code, all that it prints)."""
    words = ["objective=hinge", "pooler=lastlayer", "attn=bi", f"model.path={small_model}", "accelerator=cpu"]
    words += ["precision=fp32", "max_length=48", "data=jsonl", "data.path=pairs.jsonl", "data.validation=4"]
    words += [f"trainer.{t}" for t in ("max_steps=2", "global_batch_size=8", "progress=false")]

    def run(*more):
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "train.py", *words, "logging.tensorboard=false", *more],
            cwd=tree, env=env, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_it_is_counted_without_weights(command):
    code, printed = command("check=true")
    assert code == 0, printed
    assert "2 of 8 queries (16 texts): 16 examples seen" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("objective.margin=-1", "objective.margin=-1 must be a number, at least 0"),
        ("trainer.global_batch_size=1", "objective=hinge compares examples"),
        ("objective.name=hing", "There is no objective 'hing'. Nearest: hinge."),
    ],
)
def test_its_own_limits_and_checks_hold(command, word, message):
    code, printed = command(word)
    assert (code, message in printed) == (2, True), printed


@pytest.mark.slow
@pytest.mark.parametrize("frozen", ["false", "true"])
def test_it_trains_and_the_manifest_states_it(command, tree, frozen):
    code, printed = command(f"backbone.frozen={frozen}", f"runs_dir=runs-{frozen}")
    assert code == 0, printed
    (path,) = (tree / f"runs-{frozen}").rglob("manifest.json")
    manifest = json.loads(path.read_text())
    assert (manifest["status"], manifest["steps"], manifest["config"]["objective"]["margin"]) == ("finished", 2, 0.2)
    assert manifest["code"]["chosen"]["objective"] == ["training.objectives.hinge"]
    assert manifest["held_out"]["before"].keys() == manifest["held_out"]["after"].keys() == {"nDCG@10"}
    assert 0 <= manifest["active"] <= 16
    again = command(f"backbone.frozen={frozen}", f"runs_dir=runs-{frozen}")
    assert "is finished; nothing to do" in again[1], again
