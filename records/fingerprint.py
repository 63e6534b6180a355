"""sha256 of what a run stands on: files, tensors, values."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.errors import UserError
from records.atomic import write_json, write_text

FOLDER = "digests"
SETTLED_NS = 2 * 10**9  # a file that was written later than this before may change again within one tick of its clock
Stamps = list[list[Any]]

_places: list[Path] = []  # the last one counts
_here: dict[str, tuple[Stamps, str]] = {}  # of this process
_sound: set[Path] = set()  # files whose sums were compared


def remember_below(cache_dir: str | Path) -> None:
    """Keep digests in <cache_dir>/digests from now on; until then they are kept in this process alone."""
    _places.append(Path(cache_dir).expanduser().absolute() / FOLDER)


def remembered(what: Any, files: Sequence[Path], compute: Callable[[], str]) -> str:
    """Return `compute()`, a digest of what is in `files`, or what it was when the same files stood there.

    what: a JSON value that says what is computed. A file is the same with its path, device, inode, size, and its times
    of change of content and of inode, both in nanoseconds: whoever writes to it moves the last, also with `touch -d`.
    What cannot be written is not remembered; a broken entry counts as none.
    """
    before = stamps(files)
    name = hashlib.sha256(json.dumps([what, platform.node(), [s[0] for s in before]]).encode()).hexdigest()[:32]
    entry = _here.get(name) or _read(name)
    if entry and entry[0] == before:
        return entry[1]
    started = time.time_ns()
    digest = compute()
    if stamps(files) == before and all(started - max(stamp[-2:]) > SETTLED_NS for stamp in before):
        _here[name] = before, digest
        _write(name, before, digest)
    return digest


def stamps(files: Sequence[Path]) -> Stamps:
    """Return [path, device, inode, size, mtime, ctime] of each file, links followed."""
    rows = []
    for file in files:
        path = os.path.realpath(file)
        stat = os.stat(path)
        rows.append([path, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns])
    return rows


def _read(name: str) -> tuple[Stamps, str] | None:
    try:
        entry = json.loads((_places[-1] / f"{name}.json").read_text(encoding="utf-8"))
        return entry["files"], str(entry["digest"])
    except (IndexError, OSError, ValueError, KeyError, TypeError):
        return None


def _write(name: str, files: Stamps, digest: str) -> None:
    if _places:
        try:
            write_json(_places[-1] / f"{name}.json", {"digest": digest, "files": files})
        except (OSError, UserError):
            return  # a full or read-only disk: the digest is made again next time


REMEMBERED_BYTES = 2**20  # smaller files are read again, which is as quick


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
    """sha256 of one file, as `sha256sum` prints it. That of a large one is remembered while the file stays as it is."""
    blob = path.resolve().name
    if path.is_symlink() and len(blob) == 64 and set(blob) <= set("0123456789abcdef"):
        return blob  # the hub's cache names large files by their own sha256
    if path.stat().st_size < REMEMBERED_BYTES:
        return digest_of(path)
    return remembered("sha256", [path], lambda: digest_of(path))


def digest_of(path: Path) -> str:
    """sha256 of what the disk holds of a file now, remembered or not: a bit that flips there moves no time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sum(path: Path) -> None:
    """Write the sha256 of a file beside it, as <name>.sha256."""
    write_text(path.with_name(f"{path.name}.sha256"), digest_of(path))


def refuse_damaged(path: Path, what: str) -> None:
    """Raise `UserError` where a file is not the one that `write_sum` saw; it is read once in a process.

    what: its name in the message, followed by its folder. Files from before there were sums have none.
    """
    sums = path.with_name(f"{path.name}.sha256")
    if path in _sound or not sums.exists():
        return
    if sums.read_bytes() != digest_of(path).encode():
        raise UserError(f"{what} in {path.parent} are damaged: their sha256 is another. Delete that folder.")
    _sound.add(path)


def of_tensors(tensors: Mapping[str, Any]) -> str:
    """sha256 over the names, shapes, types and bytes of torch tensors, in name order."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
