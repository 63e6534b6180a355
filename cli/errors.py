"""What a user sees of faults: one line that names the fault, its place and its remedy, exit code 2; no notices."""

import errno
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

# Of a disk or of a path that was given, and not of what a program does with it.
OF_DISKS = "ENOSPC EDQUOT EFBIG EROFS EACCES EPERM ESTALE EIO ENOTDIR EISDIR ENAMETOOLONG"


class UserError(Exception):
    """A fault that the user can correct. The message is one or two sentences: the fault, then the remedy."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return the end of an error message: the nearest valid names, or the first of all where none is near."""
    names = sorted(valid)
    near = get_close_matches(str(word), names, n=3, cutoff=0.5)
    return f"Nearest: {', '.join(near)}." if near else f"Valid: {', '.join(names[:40])}{', ...' * (len(names) > 40)}."


def disk_fault(error: BaseException) -> str:
    """Return the system's words for a fault of `OF_DISKS`, else "". Rust's libraries have its number in their text."""
    match = re.search(r"\(os error (\d+)\)", str(error))
    number = getattr(error, "errno", None) or (int(match[1]) if match else 0)
    return os.strerror(number) if errno.errorcode.get(number) in OF_DISKS.split() else ""


@contextmanager
def reading(path: Path | str, remedy: str = "") -> Iterator[None]:
    """Make one line that names the file of any exception of the block, which reads `path`. remedy: a sentence."""
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError(f"{path} is not there. {remedy}".strip()) from error
    except Exception as error:
        why = (getattr(error, "strerror", None) or str(error).strip() or type(error).__name__).splitlines()[0][:300]
        mend = "Free memory there." if "out of memory" in why else remedy
        raise UserError(f"{path} cannot be read: {why.rstrip('. :')}. {mend}".strip()) from error


@contextmanager
def explained() -> Iterator[None]:
    """Make a `UserError` of a disk's fault."""
    try:
        yield
    except Exception as error:
        fault, file = disk_fault(error), getattr(error, "filename", None)
        if not fault:
            raise
        raise UserError(f"{fault}{f' at {file}' if file else ''}. Mend that, then give the command again.") from error


def guard(main: Callable[[], None]) -> None:
    """Run an entry point; a `UserError` becomes one line and exit code 2, any other exception keeps its trace."""
    try:
        with explained():
            main()
        sys.stdout.flush()  # a short text goes out here, and not while the interpreter closes
    except UserError as error:
        print("error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
        raise SystemExit(2) from error
    except KeyboardInterrupt:
        print("Interrupted; the same command goes on from what is on disk.", file=sys.stderr, flush=True)
        raise SystemExit(130) from None  # as a shell says it
    except BrokenPipeError:  # of `... --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains while it closes
        raise SystemExit(141) from None


def quieten() -> None:
    """Silence notices, warnings and inner progress bars of the libraries for the rest of the process."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
