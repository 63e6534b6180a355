"""Errors that a user can correct: one line that names the fault, its place and its remedy; exit code 2."""

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

UNREAD = 141  # what a shell says of a program that SIGPIPE ended
INTERRUPTED = 130  # and of one that Ctrl-C ended
# Packages whose errors speak of the hub or of the way to it; of some neither OSError nor ConnectionError is a base.
CLIENTS = {"huggingface_hub", "httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "aiohttp"}
# Of a disk, and not of what a program does with it.
OF_DISKS = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "ESTALE", "EIO")}
OF_PATHS = {errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}  # of one that was given


class UserError(Exception):
    """A fault that the user can correct. The message is one or two sentences: the fault, then the remedy."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return the end of an error message: the nearest valid names, or the first of all where none is near."""
    names = sorted(valid)
    near = get_close_matches(str(word), names, n=3, cutoff=0.5)
    if near:
        return f"Nearest: {', '.join(near)}."
    return f"Valid: {', '.join(names[:40])}{f' and {len(names) - 40} more' * (len(names) > 40)}."


def fail(error: BaseException) -> NoReturn:
    """Print one line on standard error and leave with exit code 2."""
    print("error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
    raise SystemExit(2)


def disk_fault(error: BaseException) -> str:
    """Return the system's words for a disk that is full, read-only or failing; "" where `error` is anything else.

    Rust's libraries (safetensors, tokenizers) state the system's number in their text alone.
    """
    match = re.search(r"\(os error (\d+)\)", str(error))
    number = error.errno if isinstance(error, OSError) else int(match[1]) if match else None
    return os.strerror(number) if number is not None and number in OF_DISKS else ""


@contextmanager
def reading(path: Path | str, remedy: str = "") -> Iterator[None]:
    """Make one line that names the file of any exception of the block, which reads `path`; a `UserError` passes.

    Of broken JSON the line holds the number too. remedy: a sentence.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{_place(path, error)}. {remedy}".strip()) from error


def _place(path: Path | str, error: Exception) -> str:
    """The file, of broken JSON its line, and what is wrong with it."""
    if isinstance(error, FileNotFoundError):
        return f"{path} is not there"
    if isinstance(error, json.JSONDecodeError):
        return f"{path}, line {error.lineno}: not valid JSON ({error.msg})"
    why = (error.strerror if isinstance(error, OSError) else None) or str(error).strip() or type(error).__name__
    return f"{path} cannot be read: {why.splitlines()[0][:300].rstrip('. :')}"


def of_the_network(error: BaseException) -> bool:
    """Return whether the hub or the network failed, and not the program that asked it."""
    of_client = any(kind.__module__.split(".")[0] in CLIENTS for kind in type(error).__mro__)
    return of_client or isinstance(error, (ConnectionError, TimeoutError))


@contextmanager
def explained() -> Iterator[None]:
    """Make a `UserError` of a disk's fault, and of an operation without deterministic form under deterministic=true."""
    try:
        yield
    except Exception as error:
        fault, file = disk_fault(error), getattr(error, "filename", None)
        if isinstance(error, OSError) and error.errno in OF_PATHS:
            fault = os.strerror(error.errno)
        if fault:
            raise UserError(
                f"{fault}{f' at {file}' if file else ''}. Mend that, then give the command again."
            ) from error
        text = " ".join(str(error).split())
        if "does not have a deterministic implementation" not in text and "is not deterministic because" not in text:
            raise
        raise UserError(
            f"deterministic=true cannot be kept: {text.split(', but you set')[0][:200]}. Give deterministic=false, "
            "another model.attn_implementation, or accelerator=cpu."
        ) from error


def guard(main: Callable[[], None]) -> None:
    """Run an entry point; a `UserError` becomes one line and exit code 2, any other exception keeps its trace.

    Where whoever read the output has gone (`... --help | head`), the program leaves in silence with `UNREAD`; after
    Ctrl-C with one line and `INTERRUPTED`.
    """
    try:
        with explained():
            main()
        sys.stdout.flush()  # a short text goes out here, and not while the interpreter closes
    except UserError as error:
        fail(error)
    except KeyboardInterrupt:
        print("Interrupted; the same command goes on from what is on disk.", file=sys.stderr, flush=True)
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains while it closes
        raise SystemExit(UNREAD) from None
