"""`python -m analysis scores=<results folder or csv>`: compose, analyse, print, write."""

import sys

from cli.errors import guard


def main() -> None:
    """Run the command line; the heavy imports wait until the arguments are known to be good."""
    from analysis.cli import help_page, read_arguments

    arguments = sys.argv[1:]
    if {"-h", "--help", "help"} & set(arguments):
        print(help_page())
        return
    settings = read_arguments(arguments)

    from analysis.analyse import analyse
    from analysis.control.rule import NotControlledError
    from analysis.render import markdown
    from analysis.write import output_folder, printed, write_files

    folder = output_folder(settings)
    try:
        result = analyse(settings)
    except NotControlledError as refused:
        print(markdown(refused.table), file=sys.stderr)
        raise
    files = write_files(result, folder)
    print(printed(result, folder))
    print("\n  ".join(["Files:", *map(str, files)]))


if __name__ == "__main__":
    guard(main)
