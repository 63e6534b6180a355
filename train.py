"""Train one cell of the grid, or a sweep of cells: `python train.py pooler=multilayer attn=bi`."""

import sys
from collections.abc import Sequence
from typing import Any

from cli.errors import guard


def run(config: dict[str, Any], words: Sequence[str]) -> None:
    """Train the run of a job in the folder that its words name."""
    from records.run_folder import run_folder
    from training.run import run as train  # imports torch: not for what Hydra alone can print

    train(config, run_folder(config, words))


def main() -> None:
    """Refuse what is misspelt, and hand the job, or each job of a sweep, to its objective."""
    from cli.compose import with_recipe
    from studies.sweep import start

    start("train", sys.argv[1:], run, with_recipe)


if __name__ == "__main__":
    guard(main)
