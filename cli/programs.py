"""The commands of an installed program: `train` is `python train.py`, `analyse` is `python -m analysis`."""

import runpy
import sys
from pathlib import Path

from cli.help import HOME


def main() -> None:
    """Be the command by whose name this was called; no module `evaluate` is imported, which hides a package of PyPI."""
    name = Path(sys.argv[0]).stem
    if name == "analyse":
        runpy.run_module("analysis", run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = str(HOME / f"{name}.py")  # what starts processes of its own gives them this file
        runpy.run_path(sys.argv[0], run_name="__main__")
