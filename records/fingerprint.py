"""sha256 of what a run stands on: files, tensors, values; and the seeds of its random streams, drawn by sha256."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any


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
    return _read(path.resolve(), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


@lru_cache(maxsize=4096)
def _read(path: Path, *_state: int) -> str:
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
