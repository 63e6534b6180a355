"""The start of `python -m training.<name>`: what is misspelt is refused before torch is imported."""

import sys
from importlib import import_module

from cli.compose import composed, help_screen, plain, readable
from cli.errors import quieten


def run_command(name: str, module: str) -> None:
    """Run `module.run` with conf/<name>.yaml and the words of the command line. Raises `UserError`."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(help_screen(name))
        return
    config = plain(composed(name, readable(sys.argv[1:])))  # before the imports, which take seconds
    command = import_module(module)
    quieten()
    command.run(config)
