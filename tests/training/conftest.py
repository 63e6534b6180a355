"""What the training tests share: triples in a file, and a power cut before a chosen step."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from tests.training.raw_stages import write_lines
from tests.triples import write_triples
from training import run as running
from training.module import StepModule


@pytest.fixture(scope="session", autouse=True)
def _the_same_step_counted_once():
    """Count the FLOPs of each configuration once: the counting takes a third of a short run."""
    real = running.training_flops
    once = cache(lambda cfg: real(json.loads(cfg)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "training_flops", lambda cfg: once(json.dumps(cfg)))
        yield


@pytest.fixture(scope="session")
def pairs(tmp_path_factory) -> Path:
    """A file of (query, positive, negative) triples."""
    return write_triples(tmp_path_factory.mktemp("data") / "pairs.jsonl")


@pytest.fixture(scope="session")
def headed_model(small_model, tmp_path_factory) -> Path:
    """A folder with a Llama like the small model, with a language-model head of its own (not tied)."""
    folder = tmp_path_factory.mktemp("headed")
    AutoTokenizer.from_pretrained(small_model).save_pretrained(folder)
    torch.manual_seed(1)
    shape = LlamaConfig.from_pretrained(small_model)
    shape.tie_word_embeddings = False
    LlamaForCausalLM(shape).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def lines(tmp_path_factory) -> Path:
    """A file with 39 lines of text."""
    return write_lines(tmp_path_factory.mktemp("text") / "lines.txt")


@pytest.fixture
def power_cut(monkeypatch) -> Callable[[int], AbstractContextManager[None]]:
    """power_cut(3): inside the `with`, training must die when three steps are done and the fourth begins."""

    @contextmanager
    def before(step: int) -> Iterator[None]:
        real = StepModule.training_step

        def killed(self, tick, index):
            if self.global_step == step:
                raise SystemExit("the power went")
            return real(self, tick, index)

        with monkeypatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(StepModule, "training_step", killed)
            yield

    return before
