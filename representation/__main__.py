"""`python -m representation run='runs/embedded/*/seed=*'`: why designs differ; --help prints the manual."""

import sys

from cli.errors import guard


def main() -> None:
    """Hand the command line on."""
    from representation.command import main as command

    command(sys.argv[1:])


if __name__ == "__main__":
    guard(main)
