"""Score runs with mteb: `python evaluate.py run=<run folder or glob> benchmark=docs`; --help prints the manual."""

import sys

from cli.errors import guard


def main() -> None:
    """Hand the command line to `evaluation`."""
    from evaluation import command

    command.main(sys.argv[1:])


def finished(words: list[str]) -> bool:
    """Tell whether the command of these words would score nothing."""
    from evaluation import command

    return command.finished(words)


# The guard matters: a file evaluate.py at the root shadows the PyPI package `evaluate`, which libraries may import.
if __name__ == "__main__":
    guard(main)
