"""Score runs with mteb: `python evaluate.py run=<run folder or glob>`; --help prints the manual."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from cli.errors import guard


def run(config: dict[str, Any], words: Sequence[str]) -> None:
    """Score what a job names, of a sweep on a GPU of its own where the machine has several."""
    import torch
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from evaluation.command import run as score

    job = HydraConfig.get()
    if job.mode is RunMode.MULTIRUN:
        os.environ["LOCAL_RANK"] = str(job.job.num % max(1, torch.cuda.device_count()))
    score(config, words)


def main() -> None:
    """Refuse what is misspelt, and score; with -m one job of Hydra's for each list of tasks, or for each run."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars inside mteb would tear ours; tqdm reads it when first imported
    from evaluation.words import evaluate_words
    from studies.sweep import start

    start("evaluate", sys.argv[1:], run, evaluate_words)


# The guard matters: a file evaluate.py at the root shadows the PyPI package `evaluate`, which libraries may import.
if __name__ == "__main__":
    guard(main)
