"""What can be wrong with any file: damage done in its place, and the line with which a reader must answer."""

import gzip
import json
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.errors import UserError

Make = Callable[[Path], tuple[Path, Callable[[], Any]]]


class Planted:
    """Unpickled, it writes a file: a reader that does so has executed what it read."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.write_text, (Path(self.mark), "executed")


def mark_of(path: Path) -> Path:
    """Where a pickle planted at `path` writes."""
    return path.with_name("executed")


def _rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """A damage of the content, of a packed file of what is packed."""

    def damage(path: Path) -> None:
        content, packed = path.read_bytes(), path.suffix == ".gz"
        new = change(gzip.decompress(content) if packed else content)
        path.write_bytes(gzip.compress(new) if packed else new)

    return damage


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "absent": Path.unlink,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "empty": lambda path: path.write_bytes(b""),
    "random bytes": lambda path: path.write_bytes(random.Random(0).randbytes(4096)),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Planted(str(mark_of(path))))),
    "a web page": _rewritten(lambda _: b"<!DOCTYPE html>\n<title>404</title>\n"),
    "a list": _rewritten(lambda _: b"[1, 2]\n"),
    "other keys": _rewritten(lambda _: json.dumps({"a": 1}).encode() + b"\n"),
}


def everything_in(folder: Path) -> dict[str, Any]:
    """What lies in a folder: path -> size, or what it is."""
    return {str(p): p.lstat().st_size if p.is_file() and not p.is_symlink() else "" for p in folder.rglob("*")}


def answer(call: Callable[[], Any], folder: Path, *names: str) -> str:
    """Return what is wrong with the answer to bad input that lies in `folder`; "" for one line that names one of
    `names` and a remedy, with nothing executed and nothing written."""
    before = everything_in(folder)
    try:
        call()
    except UserError as error:
        text = str(error)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300]
    else:
        return "passes"
    if everything_in(folder) != before:
        return f"leaves {everything_in(folder).items() ^ before.items()}"
    if "\n" in text or len(text) > 1000:
        return f"is not one line: {text[:300]!r}"
    if names and not any(name in text for name in names):
        return f"does not name {' or '.join(names)}: {text}"
    return "" if re.search(r"[.?!)] ['A-Z]", text) else f"names no remedy: {text}"


def faults(tmp_path: Path, make: Make, names: tuple[str, ...] = (), fine: tuple[str, ...] = ()) -> list[str]:
    """Return what is wrong with the answers of a reader to every damage but those that are `fine`.

    make: writes good input into an empty folder, returns the file to damage and what reads it. names: what a line may
    name in place of the file.
    """
    found = []
    for number, (what, damage) in enumerate({"none": None, **DAMAGES}.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        path, call = make(folder)
        if damage is None:
            call()
            continue
        damage(path)
        fault = answer(call, folder, path.name, *names)
        fault = "executes it" if mark_of(path).exists() else fault
        if fault and not (what in fine and fault == "passes"):
            found.append(f"{what}: {fault}")
    return found
