"""The words after `python -m benchmarks.<name>`: what is wrong in them is one line and exit code 2, as everywhere."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cli.errors import UserError, nearest


class Parser(argparse.ArgumentParser):
    """argparse whose errors are `UserError`: one line, without the manual before it."""

    def error(self, message: str) -> NoReturn:
        """Raise `UserError` with argparse's message."""
        raise UserError(f"{message}. Type {self.prog} --help for the manual.")


def whole(text: str) -> int:
    """Return a whole number above 0. Raises `argparse.ArgumentTypeError`, which `Parser` makes one line of."""
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} must be a whole number above 0")
    return int(text)


def share(text: str) -> float:
    """Return a number from 0 to below 1, such as a dropout. Raises `argparse.ArgumentTypeError`."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a number from 0 to below 1")
    return value


def taken_out(words: Sequence[str], key: str, default: int) -> tuple[int, list[str]]:
    """Return the number of `key=<whole number above 0>` and the other words. Raises `UserError` for another value."""
    rest = [word for word in words if word.partition("=")[0] != key]
    values = [word.partition("=")[2] for word in words if word.partition("=")[0] == key]
    if not values:
        return default, rest
    try:
        return whole(values[-1]), rest
    except argparse.ArgumentTypeError as error:
        raise UserError(f"{key}={error}, such as {key}={default}.") from error


def number_of_sets(default: int) -> int:
    """Return the number of `sets=` from a command line that has no other words. Raises `UserError` for any other."""
    value, rest = taken_out(sys.argv[1:], "sets", default)
    if rest:
        near = nearest(rest[0].partition("=")[0], ["sets"])
        raise UserError(f"There is no argument {rest[0]!r}. {near} Write sets={default}.")
    return value


def folder_first(example: str, or_file: bool = False) -> Path:
    """Return the folder that the first word names, or file. Raises `UserError` without it, or where there is none."""
    if len(sys.argv) < 2:
        raise UserError(f"Name a folder of runs, such as {example}.")
    if not (Path(sys.argv[1]).is_dir() or (or_file and Path(sys.argv[1]).is_file())):
        raise UserError(f"{sys.argv[1]} is not a folder. Name a folder of runs, such as {example}.")
    return Path(sys.argv[1])
