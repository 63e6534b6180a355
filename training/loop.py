"""Lightning runs the steps: progress, logs, checkpoints, several processes."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback, RichProgressBar
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger

from training.checkpoints import LAST, Clock, SaveLast
from training.module import ContrastiveModule
from training.processes import GatheredStrategy, processes_of_one_job
from training.progress_lines import ProgressLines

Config = dict[str, Any]
STOPPED = 143  # exit code of a process that SIGTERM ended


def fit(config: Config, module: ContrastiveModule, validation: Callback, folder: Path) -> None:
    """Run the steps that are left; leave the program where the run is stopped before its last step."""
    t = config["trainer"]
    device = next(module.encoder.parameters()).device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)  # an earlier run of a sweep is no part of this one's peak
    callbacks: list[Callback] = [SaveLast(folder, t["checkpoint_every"]), validation]  # saved first
    if t["progress"] == "lines":
        callbacks.append(ProgressLines(str(folder), t["max_steps"]))
    elif t["progress"]:
        callbacks.append(RichProgressBar(leave=True))
    trainer = pl.Trainer(
        max_steps=t["max_steps"],
        max_epochs=1,  # of the clock; the epochs of the data are BatchOrder's
        accelerator=device.type,  # as `best_device` resolved it: Lightning's own "auto" would take Apple's GPU
        devices=t["devices"],
        strategy=GatheredStrategy() if t["devices"] > 1 else "auto",
        logger=loggers(config, folder),
        callbacks=callbacks,
        enable_checkpointing=False,
        enable_progress_bar=t["progress"] is True,
        enable_model_summary=False,
        log_every_n_steps=1,
        num_sanity_val_steps=0,
    )
    last = folder / LAST
    resumed = last if last.exists() and config["resume"] else None
    with processes_of_one_job(t["devices"]), suppress(SystemExit):  # what Lightning makes of SIGTERM, with exit code 0
        trainer.fit(module, Clock(t["max_steps"]), ckpt_path=resumed, weights_only=True)
    leave_where_stopped(trainer, t["max_steps"], folder)
    module.to(device)  # Lightning leaves it on the CPU


def leave_where_stopped(trainer: pl.Trainer, steps: int, folder: Path) -> None:
    """Leave the program where Lightning returned before the last step, as if all were well."""
    if trainer.global_step < steps:
        print(f"Stopped at step {trainer.global_step} of {steps}; the same command continues {folder}.")
        raise SystemExit(STOPPED)


def loggers(config: Config, folder: Path) -> list[Logger]:
    """CSV and TensorBoard by default, wandb by flag; all inside the run folder, each attempt in a file of its own."""
    chosen = config["logging"]
    attempt = f"attempt={len(list((folder / 'logs').glob('attempt=*')))}"
    made: list[Logger] = []
    if chosen["csv"]:
        made.append(CSVLogger(folder, name="logs", version=attempt))
    if chosen["tensorboard"]:
        made.append(TensorBoardLogger(folder, name="tensorboard", version=attempt))
    if chosen["wandb"]:
        made.append(WandbLogger(project=chosen["wandb"], save_dir=folder, name=str(folder)))
    return made
