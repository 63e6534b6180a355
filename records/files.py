"""Files: refused in one line, written whole or not at all, in a folder of one process; sha256 of them and of values."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from cli.errors import UserError, disk_fault, reading


def read_object(path: Path, remedy: str = "") -> dict[str, Any]:
    """Return the JSON object in a file. Raises `UserError`, with the line, where there is none."""
    with reading(path, remedy):
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object. {remedy}".strip())
    return value


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path (file or folder) next to `path`; rename it to `path` when the block ends well.

    On an error nothing remains and an older `path` stays as it was. A disk that is full, read-only or fails becomes a
    `UserError`. Whoever wrote the draft, its files and folders have the modes that the umask says.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent, ignore_cleanup_errors=True) as shelf:
            draft = Path(shelf, path.name)
            yield draft
            _open_to_umask(draft)
            if path.is_dir():  # os.replace cannot put a folder over a full one: step the old one aside first
                os.replace(path, draft.with_name(".old"))
            os.replace(draft, path)
    except Exception as error:
        fault = disk_fault(error)
        if fault:
            mend = "Mend that and run the same command again."
            raise UserError(f"{fault} while writing {path}; what was there before is kept. {mend}") from error
        raise


def _open_to_umask(draft: Path) -> None:
    """Give what was drafted the modes that the umask says: safetensors and tempfile write for their owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (draft, *draft.rglob("*")) if draft.is_dir() else (draft,):
        if path.exists() and not path.is_symlink():
            path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write `text`, or its parts one after the other, to `path` in one step."""
    with replacing(path) as draft, draft.open("w", encoding="utf-8") as file:
        file.writelines([text] if isinstance(text, str) else text)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON to `path` in one step; NaN is refused, since JSON has none."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False, default=str) + "\n")


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


def of_value(value: Any) -> str:
    """sha256 of a JSON value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def of_files(paths: Iterable[Path]) -> str:
    """sha256 over the names and contents of files, in name order."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda p: p.name):
        digest.update(path.name.encode())
        digest.update(of_file(path).encode())
    return digest.hexdigest()


def of_file(path: Path) -> str:
    """sha256 of one file, as `sha256sum` prints it; a process reads a file once while it stays as it is."""
    blob = path.resolve().name
    if path.is_symlink() and len(blob) == 64 and set(blob) <= set("0123456789abcdef"):
        return blob  # the hub's cache names large files by their own sha256
    stat = os.stat(path)
    return _digest(path.resolve(), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


@lru_cache(maxsize=4096)
def _digest(path: Path, *_state: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_tensors(tensors: Mapping[str, Any]) -> str:
    """sha256 over the names, shapes, types and bytes of torch tensors, in name order."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def stream_seed(seed: int, stream: str, *position: int) -> int:
    """Return a 63-bit seed for `stream` ("data", "dropout", "adapter", "head", ...) at `position` (step, chunk, ...).

    A function of its arguments alone, so an interrupted run draws what the uninterrupted one would have drawn.
    """
    text = ":".join(map(str, (seed, stream, *position)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
