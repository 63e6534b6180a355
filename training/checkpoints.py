"""Checkpoints that are whole or absent, and Lightning's clock."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytorch_lightning as pl

from records.atomic import replacing

LAST = "last.ckpt"


class SaveLast(pl.Callback):
    """Save adapter, head, optimiser and position every `every` steps as `last.ckpt`, the old one kept until then.

    The last step always has one: where anything fails after it, the same command goes on without training again.
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.path, self.every = folder / LAST, every

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Write the checkpoint when its step has come; a full disk leaves the last good one in place."""
        step = trainer.global_step
        if step == trainer.max_steps or (self.every and step % self.every == 0):
            if not trainer.is_global_zero:
                trainer.save_checkpoint(self.path)  # takes part in the barrier; only the first process writes
                return
            with replacing(self.path) as draft:
                trainer.save_checkpoint(draft)


class Clock:
    """A data loader that only ticks: which batch a step sees is decided by the step's number."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.steps))
