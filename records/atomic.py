"""Files appear whole or not at all: written to a temporary name in the same folder, then renamed."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE
from typing import Any

from cli.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path (file or folder) next to `path`; rename it to `path` when the block ends well.

    On an error nothing remains and an older `path` stays as it was. A full disk becomes a `UserError`. Whoever wrote
    the draft, its files and folders have the modes that the umask says.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    shelf = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        draft = shelf / path.name
        yield draft
        _open_to_umask(draft, shelf)
        if path.is_dir():  # os.replace cannot put a folder over a full one: step the old one aside first
            os.replace(path, shelf / "old")
        os.replace(draft, path)
    except OSError as error:
        raise (_full_disk(path) if error.errno in FULL else error) from error
    finally:
        shutil.rmtree(shelf, ignore_errors=True)


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """As `replacing`, for a folder whose name says what is in it: where another process was first, its folder stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    shelf = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        draft = shelf / folder.name
        yield draft
        _open_to_umask(draft, shelf)
        try:
            os.rename(draft, folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    except OSError as error:
        raise (_full_disk(folder) if error.errno in FULL else error) from error
    finally:
        shutil.rmtree(shelf, ignore_errors=True)


def _open_to_umask(draft: Path, shelf: Path) -> None:
    """Give what was drafted the modes that the umask says: safetensors and tempfile write for their owner alone.

    The modes are read off a file and a folder made next to it, so that a folder's own rules (setgid) count too.
    """
    usual_file, usual_folder = shelf / ".usual_file", shelf / ".usual_folder"
    usual_file.touch()
    usual_folder.mkdir()
    of_file, of_folder = (S_IMODE(p.stat().st_mode) for p in (usual_file, usual_folder))
    for path in (draft, *draft.rglob("*")) if draft.is_dir() else (draft,):
        if path.is_symlink() or not path.exists():
            continue
        mode = of_folder if path.is_dir() else of_file
        if S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)


def _full_disk(path: Path) -> UserError:
    return UserError(
        f"No space left while writing {path}; what was there before is kept. "
        "Free some disk and run the same command again."
    )


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` in one step."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON to `path` in one step; NaN is refused, since JSON has none."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False, default=str) + "\n")
