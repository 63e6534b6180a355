"""Files that others wrote: opened where they are ordinary ones, unpacked within bounds, else refused in one line."""

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO, Any

from cli.errors import UserError

UNPACKED = 100  # times the size of a packed file that it may come to: text comes to 3 to 20 times
FREE = 2**26  # bytes that any packed file may come to
LONGEST_LINE = 2**28  # bytes


def check_file(path: Path, remedy: str) -> None:
    """Raise `UserError` where `path` is no ordinary file: of a pipe or a device the end may never come."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        what = (
            "is a link to nothing" if path.is_symlink() and not path.exists() else f"cannot be read: {error.strerror}"
        )
    else:
        if S_ISREG(mode):
            return
        what = "is a folder, no file" if S_ISDIR(mode) else "is a pipe or a device, no file"
    raise UserError(f"{path} {what}. {remedy}")


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Raise `UserError`, naming the file, where reading it stops at a damaged or cut gzip file, or at the disk."""
    remedy = "Compress or download it anew."
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file ({error}). {remedy}") from error
    except OSError as error:
        why = " ".join(str(error.strerror or error).split()).rstrip(".")
        raise UserError(f"{path} cannot be read: {why}. {remedy}") from error


def open_bytes(path: Path, remedy: str) -> IO[bytes]:
    """Open an ordinary file; .gz is unpacked. Reading raises `UserError` where it unpacks to more than text does."""
    check_file(path, remedy)
    if path.name.lower().endswith(".gz"):
        return io.BufferedReader(_Unpacked(path), 2**17)
    return path.open("rb")


def check_unpacked(path: Path, size: int) -> None:
    """Raise `UserError` where `size`, the bytes that a packed file came to so far, is more than text comes to."""
    if size > max(FREE, UNPACKED * path.stat().st_size):
        raise UserError(
            f"{path} unpacks to more than {UNPACKED} times its size, as text does not. "
            "Look into it; if it is what you want, give it unpacked, as .jsonl or .csv."
        )


class _Unpacked(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self.path, self.file, self.size = path, gzip.GzipFile(path), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self.file.readinto(buffer)
        self.size += read
        check_unpacked(self.path, self.size)
        return int(read)

    def close(self) -> None:
        self.file.close()
        super().close()


def lines_of(path: Path, remedy: str) -> Iterator[bytes]:
    """Yield the lines of a file with their ends. Raises `UserError` for one that no memory would hold."""
    with damage_named(path), open_bytes(path, remedy) as file:
        while line := file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise UserError(f"{path} has a line of {LONGEST_LINE >> 20} MiB or more. Write one record per line.")
            yield line


def read_text(path: Path, remedy: str) -> str:
    """Return the text of a file in UTF-8. Raises `UserError` where there is none."""
    check_file(path, remedy)
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 ({error.reason}). {remedy}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. {remedy}") from error


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """Return the JSON object in a file. Raises `UserError`, with the line, where there is none."""
    text = read_text(path, remedy)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError alone: a number of thousands of digits
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        why = error.msg if isinstance(error, json.JSONDecodeError) else error
        raise UserError(f"{path}{line}: not valid JSON ({why}). {remedy}") from error
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object. {remedy}")
    return value
