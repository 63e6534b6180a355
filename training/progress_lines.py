"""Progress as lines, for a log file or several runs on one screen."""

import time
from typing import Any

import pytorch_lightning as pl

LINES = 6  # over a whole run


class ProgressLines(pl.Callback):
    """Print a line every sixth of the steps: step, loss, tokens/s, time left."""

    def __init__(self, name: str, steps: int) -> None:
        self.name, self.steps, self.every = name, steps, max(1, steps // LINES)
        self.first, self.started = 0, 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Time left counts from here, also where a run goes on."""
        self.first, self.started = trainer.global_step, time.perf_counter()

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        """Say how far it is, on the first process only."""
        step = trainer.global_step
        if step % self.every or step == self.steps or not trainer.is_global_zero:
            return
        left = (time.perf_counter() - self.started) / (step - self.first) * (self.steps - step)
        shown = trainer.progress_bar_metrics
        print(
            f"{self.name}: step {step} of {self.steps}, loss {shown['loss']:.3f}, {shown['tokens/s']:,.0f} tokens/s,"
            f" {left:.0f} s left",
            flush=True,
        )
