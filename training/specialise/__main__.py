"""`python -m training.specialise data=... out=new.jsonl`: pairs written from seeds; --help prints the manual."""

import sys
from collections.abc import Sequence

from cli.compose import composed, plain
from cli.errors import guard
from cli.help import help_screen
from cli.words import readable


def main(arguments: Sequence[str] = ()) -> None:
    """Read the command line and specialise. Raises `UserError` for what the user can change."""
    arguments = arguments or sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(help_screen("specialise"))
        return
    cfg = plain(composed("specialise", readable(arguments)))
    from cli.quiet import quieten
    from training.specialise.command import run

    quieten()
    run(cfg)


if __name__ == "__main__":
    guard(main)
