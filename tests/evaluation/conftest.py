"""A real, fast encoder for task tests: hashed bag of words, unit length. And small tasks whose scores are known."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.candidates import Candidate
from tests.evaluation.small_tasks import write_tasks


@dataclass
class Meter:
    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass
class BagOfWords:
    """Words hashed to +-1 in one of `embedding_dim` places; `salt` stands for other weights."""

    salt: str = ""
    embedding_dim: int = 512
    max_length: int = 10_000
    meter: Meter = field(default_factory=Meter)
    settings: dict[str, Any] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)  # (instruction, text) of every call

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.salt.encode()).hexdigest()

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        yield list(range(len(texts))), self.encode(texts, instruction)

    def encode(
        self, texts: Sequence[str], instruction: str = "", progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        self.seen += [(instruction, text) for text in texts]
        rows = np.zeros((len(texts), self.embedding_dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                code = _code(self.salt + word)
                row[code % self.embedding_dim] += 1 if code & (1 << 40) else -1
                self.meter.tokens += 1
        self.meter.texts += len(texts)
        self.meter.seconds += 1e-6 * len(texts)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


@cache
def _code(word: str) -> int:
    return int(hashlib.sha256(word.encode()).hexdigest()[:12], 16)


@dataclass(frozen=True)
class LocalCandidate(Candidate):
    """A candidate whose encoder is at hand."""

    encoder: Any = None

    def load(self) -> Any:
        return self.encoder


@pytest.fixture
def bag() -> type[BagOfWords]:
    return BagOfWords


@pytest.fixture
def candidate(tmp_path: Path) -> Callable[..., Candidate]:
    """A finished run of design `pooler`, seed 0, scored by a bag of words."""

    def make(pooler: str = "eos", salt: str = "", results: Path = tmp_path / "scores", **kwargs: Any) -> Candidate:
        manifest = {"study": "test", "pooler": pooler, "attn": "causal", "seed": 0, "status": "finished"}
        manifest["config"] = {"pooler": {"name": pooler}}
        encoder = kwargs.pop("encoder", None) or BagOfWords(salt)
        return LocalCandidate(manifest | {"weights_sha256": salt}, results, folder=tmp_path, encoder=encoder)

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one small task of each type; bag of words is perfect on all of them."""
    return write_tasks(tmp_path / "tasks")
