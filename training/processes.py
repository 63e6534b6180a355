"""Several processes for one job: they see this job alone, and leave nothing behind for the next job of a sweep."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist
from hydra.core.hydra_config import HydraConfig
from pytorch_lightning.strategies import DDPStrategy

LAUNCHED = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")  # set by Lightning's launcher


class GatheredStrategy(DDPStrategy):
    """Processes as in DDP, without its wrapper: `LargeBatch` sums the gradients itself, once a step."""

    def configure_ddp(self) -> None:
        """Leave the module as it is."""


@contextmanager
def processes_of_one_job(devices: int) -> Iterator[None]:
    """Let Lightning start `devices` - 1 processes that run this job of a sweep and then end.

    Lightning starts them with `sys.argv`, which is the whole sweep: they would go through it beside us, and the
    process group would still be there when a later job wants another number of processes, or none.
    torchrun and Slurm start their processes themselves; those go through the sweep together, and are left alone.
    """
    if devices == 1 or "LOCAL_RANK" in os.environ or not HydraConfig.initialized():
        yield
        return
    words, before = sys.argv, set(os.environ)
    sys.argv = [words[0], *(w for w in HydraConfig.get().overrides.task if not w.startswith("sweep="))]
    try:
        yield
    finally:
        sys.argv = words
        for name in set(LAUNCHED) - before:
            os.environ.pop(name, None)
        if dist.is_initialized():
            dist.destroy_process_group()
