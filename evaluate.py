"""Score runs with mteb: `python evaluate.py run=<run folder or glob> benchmark=docs`; --help prints the manual."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from cli.errors import guard


def main() -> None:
    """Hand the command line to `evaluation`, or its tasks to jobs."""
    from evaluation import command

    words = sys.argv[1:]
    plain = all("=" in word and not word.startswith("-") for word in words)
    if plain and any(word.startswith(("shards=", "launcher=")) for word in words):
        in_jobs(words)
    else:
        command.main(words)


def in_jobs(words: Sequence[str]) -> None:
    """Have the jobs of a launcher score the tasks that are left, then print the table of all."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # as `command.main` does, for the jobs too
    import hydra

    from cli.compose import CONF
    from cli.quoting import evaluate_words, quoted
    from evaluation import command
    from studies.launchers import IN_PLACE, launcher_words
    from studies.sweep import Jobs

    cfg = command.configured(words)
    launcher = launcher_words(words, "evaluate")
    dealt = command.deal_out(cfg)
    if cfg["plan"]:
        command.run({**cfg, "devices": 1})
        return
    if dealt:
        jobs = Jobs(partial(score, asked=cfg["asked"]), "evaluate")
        shards = ",".join(f"[{','.join(map(quoted, tasks))}]" for tasks in dealt)
        kept = [word for word in evaluate_words(words) if not word.startswith(("tasks=", "shards="))]
        swept = [*kept, f"tasks=choice({shards})", *["progress=false"] * bool(launcher)]
        jobs.plan(swept)
        sys.argv[1:] = [*swept, *IN_PLACE, "hydra.mode=MULTIRUN", *launcher]
        with jobs.told():
            hydra.main(config_path=str(CONF), config_name="evaluate", version_base="1.3")(jobs.run)()
    command.conclude(cfg)


def score(config: dict[str, Any], asked: Sequence[str]) -> None:
    """Score what a job's configuration asks for; a process that encodes for another one ends well."""
    from evaluation import command

    try:
        command.run({**config, "asked": asked})
    except SystemExit as left:
        if left.code:
            raise


def finished(words: list[str]) -> bool:
    """Tell whether the command of these words would score nothing."""
    from evaluation import command

    return command.finished(words)


# The guard matters: a file evaluate.py at the root shadows the PyPI package `evaluate`, which libraries may import.
if __name__ == "__main__":
    guard(main)
