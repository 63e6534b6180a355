"""A real, fast encoder for task tests: hashed bag of words, unit length. And small tasks whose scores are known."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.candidates import Candidate


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
    sources: str = "words"
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


@pytest.fixture(scope="session", autouse=True)
def _versions(versions_read_once: None) -> None:
    """As scores are written."""


@pytest.fixture
def bag() -> type[BagOfWords]:
    return BagOfWords


@pytest.fixture
def candidate(tmp_path: Path) -> Callable[..., Candidate]:
    """A finished run of design `pooler`, seed 0, scored by a bag of words."""

    def make(pooler: str = "eos", salt: str = "", results: Path = tmp_path / "scores", **kwargs: Any) -> Candidate:
        manifest = {"study": "test", "pooler": pooler, "attn": "causal", "seed": 0, "status": "finished", "config": {}}
        encoder = kwargs.pop("encoder", None) or BagOfWords(salt)
        return LocalCandidate(manifest | {"weights_sha256": salt}, results, folder=tmp_path, encoder=encoder)

    return make


TOPICS = {
    "fruit": "apple pear plum cherry grape melon fig lime",
    "tools": "hammer saw drill plane chisel file clamp vice",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one small task of each type; bag of words is perfect on all of them."""
    root = tmp_path / "tasks"
    lines = {t: [f"{a} {b} {t}" for a in w.split() for b in w.split() if a < b] for t, w in TOPICS.items()}
    labelled = [(text, topic) for topic, texts in lines.items() for text in texts]
    fruit, tools = lines["fruit"], lines["tools"]
    same = [(a, " ".join(reversed(a.split())), 1) for a in fruit] + [
        (a, b, 0) for a, b in zip(fruit, tools, strict=True)
    ]
    _write(
        root,
        "Asked",
        "Retrieval",
        {
            "corpus.jsonl": [{"_id": f"d{i}", "title": "", "text": t} for i, (t, _) in enumerate(labelled)],
            "queries.jsonl": [{"_id": f"q{i}", "text": t} for i, (t, _) in enumerate(labelled[:9])],
        },
    )
    (root / "Asked" / "qrels").mkdir()
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(9))
    (root / "Asked" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    _write(
        root,
        "Ranked",
        "Reranking",
        {"test.jsonl": [{"query": a, "positive": [a], "negative": tools[:5]} for a in fruit[:7]]},
    )
    _write(
        root,
        "Classes",
        "Classification",
        {
            "train.jsonl": [{"text": t, "label": c} for t, c in labelled[::2]],
            "test.jsonl": [{"text": t, "label": c} for t, c in labelled[1::2]],
        },
    )
    _write(root, "Clusters", "Clustering", {"test.jsonl": [{"sentences": t, "labels": c} for t, c in labelled]})
    _write(
        root,
        "Pairs",
        "PairClassification",
        {"test.jsonl": [{"sentence1": a, "sentence2": b, "labels": y} for a, b, y in same]},
    )
    graded = [
        ("apple pear plum lime", " ".join([["apple", "pear", "plum", "lime"][i] for i in range(k)]), k)
        for k in (1, 2, 3, 4)
    ]
    _write(root, "Graded", "STS", {"test.jsonl": [{"sentence1": a, "sentence2": b, "score": k} for a, b, k in graded]})
    _write(
        root,
        "Summaries",
        "Summarization",
        {
            "test.jsonl": [
                {
                    "text": "a",
                    "human_summaries": ["apple pear plum lime"],
                    "machine_summaries": [b for _, b, _ in graded],
                    "relevance": [k for *_, k in graded],
                }
            ]
            * 2
        },
    )
    return root


def _write(root: Path, name: str, kind: str, files: dict[str, list[dict]]) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "task.json").write_text(json.dumps({"name": name, "type": kind}))
    for file, rows in files.items():
        (root / name / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
