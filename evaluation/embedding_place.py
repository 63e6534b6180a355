"""`embeddings=`: on disk or in memory, decided by what they will take."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from evaluation.embedding_store import FOLDER
from records.errors import UserError, nearest

MODES = ("auto", "disk", "memory")
SHARE = 10  # of the free disk, auto takes one part in so many


@dataclass(frozen=True)
class EmbeddingPlace:
    """`cache_dir`: below which they are kept on disk; None keeps them in memory. `said`: for people."""

    cache_dir: Path | None
    said: str


def embedding_place(mode: str, size: int | None, cache_dir: Path) -> EmbeddingPlace:
    """Return where embeddings of `size` bytes go; None where the size is not known.

    auto is disk where they take at most a tenth of what is free there. Raises `UserError` for another mode, and for
    mode "disk" where they do not fit.
    """
    check_mode(mode)
    free = free_bytes(cache_dir)
    need = "an unknown size" if size is None else f"at most {in_bytes(size)}"
    room = f"{in_bytes(free)} are free"
    if mode == "disk" and size is not None and size > free:
        raise UserError(f"The embeddings take {need}, and {room} at {cache_dir}. Give embeddings=memory or free some.")
    if mode == "disk" or (mode == "auto" and size is not None and size <= free / SHARE):
        return EmbeddingPlace(cache_dir, f"Embeddings: {need} on disk in {cache_dir / FOLDER}, where {room}")
    why = "" if mode == "memory" else f"; on disk they take {need}, and {room} at {cache_dir}"
    return EmbeddingPlace(None, f"Embeddings: in memory for this command alone (embeddings={mode}{why})")


def check_mode(mode: str) -> None:
    """Raise `UserError`, with the nearest names, for a mode that there is not."""
    if mode not in MODES:
        raise UserError(f"There is no embeddings={mode}. {nearest(str(mode), MODES)}")


def free_bytes(folder: Path) -> int:
    """Return what is free on the disk of a folder, which need not be there yet."""
    here = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.is_dir())
    return shutil.disk_usage(here).free


def in_bytes(size: float) -> str:
    """A size for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"
