"""What the training tests share: triples in a file, and a power cut before a chosen step."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.triples import write_triples
from training.module import ContrastiveModule


@pytest.fixture(scope="session")
def pairs(tmp_path_factory) -> Path:
    """A file of (query, positive, negative) triples."""
    return write_triples(tmp_path_factory.mktemp("data") / "pairs.jsonl")


@pytest.fixture
def power_cut(monkeypatch) -> Callable[[int], AbstractContextManager[None]]:
    """power_cut(3): inside the `with`, training must die when three steps are done and the fourth begins."""

    @contextmanager
    def before(step: int) -> Iterator[None]:
        real = ContrastiveModule.training_step

        def killed(self, tick, index):
            if self.global_step == step:
                raise SystemExit("the power went")
            return real(self, tick, index)

        with monkeypatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(ContrastiveModule, "training_step", killed)
            yield

    return before
