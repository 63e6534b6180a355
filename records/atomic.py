"""Files appear whole or not at all: written to a temporary name in the same folder, then renamed."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.errors import UserError, disk_fault


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
