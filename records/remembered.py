"""Digests of large files, made once per machine: remembered below cache_dir as long as the files stay as they were."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from records.atomic import write_json
from records.errors import UserError

FOLDER = "digests"
SETTLED_NS = 2 * 10**9  # a file that was written later than this before may change again within one tick of its clock
Stamps = list[list[Any]]

_places: list[Path] = []  # the last one counts
_here: dict[str, tuple[Stamps, str]] = {}  # of this process


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
    held = _here.get(name) or _read(name)
    if held and held[0] == before:
        return held[1]
    started = time.time_ns()
    digest = compute()
    if stamps(files) == before and all(started - max(stamp[-2:]) > SETTLED_NS for stamp in before):
        _here[name] = before, digest
        _write(name, before, digest)
    return digest


def stamps(files: Sequence[Path]) -> Stamps:
    """Return [path, device, inode, size, mtime, ctime] of each file, links followed."""
    found = []
    for file in files:
        path = os.path.realpath(file)
        stat = os.stat(path)
        found.append([path, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns])
    return found


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
