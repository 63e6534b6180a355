"""Lightning runs the steps: progress, logs, checkpoints, several processes."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from hydra.core.hydra_config import HydraConfig
from lightning_fabric.plugins.environments import SLURMEnvironment
from pytorch_lightning.callbacks import Callback, RichProgressBar
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger
from pytorch_lightning.strategies import DDPStrategy

from cli.compose import HOME
from cli.errors import UserError, reading
from encoders.precision import best_device
from encoders.text_encoder import is_out_of_memory
from records.files import replacing

Config = dict[str, Any]
LAST = "last.ckpt"
STOPPED = 143  # exit code of a process that SIGTERM ended


class SaveLast(pl.Callback):
    """Save adapter, head, optimiser and position every `every` steps as `last.ckpt`, the old one kept until then.

    The last step always has one: where anything fails after it, the same command goes on without training again.
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.path, self.every = folder / LAST, every

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Say where an interrupted run goes on."""
        if trainer.global_step and trainer.is_global_zero:
            print(f"{self.path.parent} goes on after step {trainer.global_step}.", flush=True)

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Write the checkpoint when its step has come; a full disk leaves the last good one in place."""
        step = trainer.global_step
        if step == trainer.max_steps or (self.every and step % self.every == 0):
            if not trainer.is_global_zero:
                trainer.save_checkpoint(self.path)  # takes part in the barrier; only the first process writes
                return
            with replacing(self.path) as draft:
                trainer.save_checkpoint(draft)


# set by Lightning's launcher
LAUNCHED = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS")


class GatheredStrategy(DDPStrategy):
    """Processes as in DDP, without its wrapper: `LargeBatch` sums the gradients itself, once a step."""

    def configure_ddp(self) -> None:
        """Leave the module as it is."""


@contextmanager
def processes_of_one_job(devices: int) -> Iterator[None]:
    """Let Lightning start `devices` - 1 processes that run this job of a sweep and then end.

    Lightning starts them with `sys.argv`, which is the whole sweep, and leaves the process group to later jobs. The
    processes that torchrun and SLURM start themselves go through the sweep together, and are left alone.
    """
    if devices == 1 or "LOCAL_RANK" in os.environ or not HydraConfig.initialized():
        yield
        return
    words, before = sys.argv, set(os.environ)
    sys.argv = [str(HOME / "train.py"), *HydraConfig.get().overrides.task]
    try:
        yield
    finally:
        sys.argv = words
        for name in set(LAUNCHED) - before:
            os.environ.pop(name, None)
        if dist.is_initialized():
            dist.destroy_process_group()


LINES = 6  # over a whole run


class ProgressLines(pl.Callback):
    """Print a line after three steps and each sixth of all: loss, tokens/s, time left at the mean pace so far."""

    def __init__(self, folder: Path, steps: int) -> None:
        self.folder, self.steps, self.every = folder, steps, max(1, steps // LINES)
        self.first, self.started = 0, time.perf_counter()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Time left counts from here, also where a run goes on."""
        self.first, self.started = trainer.global_step, time.perf_counter()

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        """Say how far it is, on the first process only."""
        step, shown = trainer.global_step, trainer.progress_bar_metrics
        if (step % self.every and step - self.first != 3) or step == self.steps or not trainer.is_global_zero:
            return
        left = (time.perf_counter() - self.started) / (step - self.first) * (self.steps - step)
        figures = f"loss {float(shown['loss']):.3f}, {float(shown['tokens/s']):,.0f} tokens/s, {left:.0f} s left"
        print(f"{self.folder}: step {step} of {self.steps}, {figures}", flush=True)


def fit(
    config: Config, module: pl.LightningModule, further: Sequence[Callback], folder: Path, close: Callable[[], None]
) -> None:
    """Run the steps that are left; leave the program where the run is stopped before its last step.

    further: callbacks that run after the checkpoint is saved. close: called after the last step by every process, while
    all are there.
    """
    t = config["trainer"]
    device = best_device(config["accelerator"])
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)  # an earlier run of a sweep is no part of this one's peak
    callbacks: list[Callback] = [SaveLast(folder, t["checkpoint_every"]), *further]
    if t["progress"]:
        lines = t["progress"] == "lines"
        callbacks.append(ProgressLines(folder, t["max_steps"]) if lines else RichProgressBar(leave=True))
    trainer = pl.Trainer(
        max_steps=t["max_steps"],
        max_epochs=1,  # of the clock; the epochs of the data are those of the batches
        accelerator=device.type,  # as `best_device` resolved it: Lightning's own "auto" would take Apple's GPU
        devices=t["devices"],
        num_nodes=t["num_nodes"],
        strategy=GatheredStrategy() if t["devices"] * t["num_nodes"] > 1 else "auto",
        logger=loggers(config, folder),
        callbacks=callbacks,
        enable_checkpointing=False,
        enable_progress_bar=t["progress"] is True,
        enable_model_summary=False,
        log_every_n_steps=1,
        num_sanity_val_steps=0,
        default_root_dir=folder,
        # a requeued job of SLURM continues by `last.ckpt`; Lightning's own file would be taken up by any later run
        plugins=[SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else None,
    )
    last = folder / LAST
    resumed = last if last.exists() and config["resume"] else None
    if resumed:
        with reading(last, "Delete it: the same command then begins anew."):
            torch.load(last, map_location="cpu", weights_only=True)
    with processes_of_one_job(t["devices"]):
        clock = range(t["max_steps"])  # a loader that only ticks: the step's number decides which batch a step sees
        with suppress(SystemExit), memory_named():  # the first is what Lightning makes of SIGTERM, with exit code 0
            trainer.fit(module, clock, ckpt_path=resumed, weights_only=True)
        if trainer.global_step == t["max_steps"]:
            close()
    if trainer.global_step < t["max_steps"]:  # Lightning returned early, as if all were well
        print(f"Stopped at step {trainer.global_step} of {t['max_steps']}; the same command continues {folder}.")
        raise SystemExit(STOPPED)


@contextmanager
def memory_named() -> Iterator[None]:
    """Raise `UserError`, which says what needs less, where memory runs out."""
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            "Out of memory. Give trainer.gradcache=true, which keeps the graph of one chunk at a time, a lower "
            "token_budget, or trainer.gradient_checkpointing=true."
        ) from error


def loggers(config: Config, folder: Path) -> list[Logger]:
    """CSV and TensorBoard by default, wandb by flag; all inside the run folder, each attempt in a file of its own."""
    chosen, attempt = config["logging"], f"attempt={len(list((folder / 'logs').glob('attempt=*')))}"
    writers: list[Logger] = [CSVLogger(folder, name="logs", version=attempt)] if chosen["csv"] else []
    if chosen["tensorboard"]:
        writers.append(TensorBoardLogger(folder, name="tensorboard", version=attempt))
    if chosen["wandb"]:
        import wandb

        wandb.finish()  # of an earlier job of a sweep, whose run Lightning would go on with
        writers.append(WandbLogger(project=chosen["wandb"], save_dir=folder, name=str(folder)))
    return writers
