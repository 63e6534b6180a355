"""A folder that one process at a time works in, as far as the system knows: nothing of it stays on disk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from cli.errors import UserError

try:
    import fcntl
except ImportError:  # Windows: two commands on one folder are not told apart
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone_in(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold `folder`, which is made, for as long as the `with` lasts. The system lets it go with the process.

    wait: until another process has let it go. Raises `UserError` where one holds it, without `wait`. A file system that
    knows no locks holds nothing. What was made and is still empty goes where the work within ends in an error; with
    `wait` it stays, since others may be waiting for it.
    """
    there = next((path for path in (folder, *folder.parents) if wait or path.exists()), folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make {folder}: {error.strerror}. Choose another place, or mend this one.") from error
    descriptor = os.open(folder, os.O_RDONLY) if fcntl else -1
    try:
        if fcntl:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError as error:
                raise UserError(
                    f"Another process is at work in {folder}. Wait until it ends, then give the same command again."
                ) from error
            except OSError:
                pass
        yield
    except BaseException:
        for path in takewhile(lambda path: path != there, (folder, *folder.parents)):
            with suppress(OSError):  # not empty
                path.rmdir()
        raise
    finally:
        with suppress(OSError):
            os.close(descriptor)
