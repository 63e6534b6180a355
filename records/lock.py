"""A folder that one process at a time works in."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from cli.errors import UserError


@contextmanager
def alone_in(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold `folder`, which is made, for as long as the `with` lasts; the system lets it go with the process.

    wait: until another process has let it go. Raises `UserError` where one holds it, without `wait`; then a folder that
    is still empty at the end goes, with those above it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UserError(
            f"Another process is at work in {folder}. Wait until it ends, then give the same command again."
        ) from error
    try:
        yield
    finally:
        (folder / ".lock").unlink(missing_ok=True)  # before it is let go: who waits for it sees that and opens another
        lock.release()
        with suppress(OSError):  # not empty
            for path in () if wait else (folder, *folder.parents[:2]):
                path.rmdir()
