"""Thirty (query, positive, negative) triples in a file, and the words of a run of a few steps on them."""

import json
from pathlib import Path

WORDS = ["sum", "array", "shape", "type", "argument", "value", "index", "column", "row", "matrix"]


def write_triples(path: Path) -> Path:
    """Write the triples as JSON lines to `path` and return it."""
    pairs = [(a, b) for i, a in enumerate(WORDS) for b in WORDS[i + 1 : i + 5]]
    rows = [
        {"query": f"the {a} of the {b}", "positive": f"returned {b} as {a}", "negative": f"a new {a}"} for a, b in pairs
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def quick_run(path: Path, steps: int = 2, checkpoint: int = 0) -> list[str]:
    """The words of a short run on the triples of a file, of which four are held out."""
    trainer = [f"max_steps={steps}", "global_batch_size=8", f"checkpoint_every={checkpoint}", "progress=false"]
    words = ["data=jsonl", f"data.path='{path}'", "data.validation=4", "objective.warmup=1"]
    return [*words, *(f"trainer.{word}" for word in trainer), "logging.tensorboard=false", "logging.csv=false"]
