"""Stages on raw text as the tests build them: a few lines of text, a few steps."""

from pathlib import Path

WORDS = ["sum", "array", "shape", "type", "argument", "value", "index", "column", "row", "matrix"]


def write_lines(path: Path) -> Path:
    """Write 39 lines of text to `path` and return it."""
    lines = [f"the {a} of the {b} is returned as a new {a}" for i, a in enumerate(WORDS) for b in WORDS[i + 1 : i + 7]]
    path.write_text("\n".join(lines) + "\n")
    return path


def quick_stage(objective: str, model: Path, lines: Path) -> list[str]:
    """The words of a stage of four steps on the lines of a file."""
    trainer = ["max_steps=4", "global_batch_size=8", "checkpoint_every=2", "progress=false"]
    words = [f"objective={objective}", f"model.path={model}", "data=text", f"data.path='{lines}'", "data.validation=8"]
    return [*words, *(f"trainer.{t}" for t in trainer), "objective.warmup=1", "logging.tensorboard=false"]
