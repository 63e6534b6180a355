"""`python -m representation run='runs/bundled/*/seed*'`: why designs differ; --help prints the manual."""

import os
import sys
from collections.abc import Sequence

from cli.compose import composed, help_screen, plain
from cli.errors import guard, quieten
from evaluation.words import evaluate_words


def main(arguments: Sequence[str] = ()) -> None:
    """Read the command line, compute, print. Raises `UserError` for what the user can change."""
    arguments = arguments or sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(help_screen("representation"))
        return
    os.environ.setdefault("TQDM_DISABLE", "1")
    cfg = plain(composed("representation", evaluate_words(arguments)))
    from representation.command import run

    quieten()
    run(cfg)


if __name__ == "__main__":
    guard(main)
