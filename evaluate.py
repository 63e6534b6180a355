"""Score runs with mteb: `python evaluate.py run=<run folder or glob> benchmark=docs`; --help prints the manual."""

import os
import sys

from cli.errors import guard


def main() -> None:
    """Hand the command line to `evaluation`, or its tasks to jobs."""
    words = sys.argv[1:]
    plain = all("=" in word and not word.startswith("-") for word in words)
    if plain and any(word.startswith(("shards=", "launcher=")) for word in words):
        os.environ.setdefault("TQDM_DISABLE", "1")  # as `command.main` does, for the jobs too
        from evaluation.shards import in_jobs
        from studies.sweep import shard_runner

        in_jobs(words, shard_runner(words))
    else:
        from evaluation import command

        command.main(words)


def finished(words: list[str]) -> bool:
    """Tell whether the command of these words would score nothing."""
    from evaluation import command

    return command.finished(words)


# The guard matters: a file evaluate.py at the root shadows the PyPI package `evaluate`, which libraries may import.
if __name__ == "__main__":
    guard(main)
