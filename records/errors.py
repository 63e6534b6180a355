"""Errors that a user can mend: one line that says what is wrong, where, and how to mend it; exit code 2."""

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import NoReturn


class UserError(Exception):
    """Something the user can mend. The message is one sentence, or two: what is wrong, then the mend."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return the end of an error message: the nearest valid names, or all of them where none is near."""
    names = sorted(valid)
    near = get_close_matches(word, names, n=3, cutoff=0.5)
    return f"Nearest: {', '.join(near)}." if near else f"Valid: {', '.join(names)}."


def fail(error: BaseException) -> NoReturn:
    """Print one line on standard error and leave with exit code 2."""
    print("error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
    raise SystemExit(2)


def guard(main: Callable[[], None]) -> None:
    """Run an entry point; a `UserError` becomes one line and exit code 2, any other exception keeps its trace."""
    try:
        main()
    except UserError as error:
        fail(error)
