"""The commands of an installed program: `train` is `python train.py`, `evaluate` and `analyse` likewise."""

import runpy
import sys

from cli.help import HOME


def train() -> None:
    """Be `python train.py`."""
    _file("train.py")


def evaluate() -> None:
    """Be `python evaluate.py`; no module of that name is imported, which would hide a package of PyPI."""
    _file("evaluate.py")


def study() -> None:
    """Be `python study.py`."""
    _file("study.py")


def analyse() -> None:
    """Be `python -m analysis`."""
    runpy.run_module("analysis", run_name="__main__", alter_sys=True)


def _file(name: str) -> None:
    sys.argv[0] = str(HOME / name)  # what starts processes of its own gives them this file
    runpy.run_path(sys.argv[0], run_name="__main__")
