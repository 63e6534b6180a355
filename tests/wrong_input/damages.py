"""What can be wrong with any file: damage done in its place, and the line with which a reader must answer."""

import gzip
import json
import os
import pickle
import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.errors import UserError

Make = Callable[[Path], tuple[Path, Callable[[], Any]]]
DEEP = 200_000


class Planted:
    """Unpickled, it writes a file: a reader that does so has executed what it read."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.write_text, (Path(self.mark), "executed")


def mark_of(path: Path) -> Path:
    """Where a pickle planted at `path` writes."""
    return path.with_name("executed")


def _other_file(make: Callable[[Path], Any]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def _rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """A damage of the content, of a packed file of what is packed."""

    def damage(path: Path) -> None:
        content, packed = path.read_bytes(), path.suffix == ".gz"
        new = change(gzip.decompress(content) if packed else content)
        path.write_bytes(gzip.compress(new) if packed else new)

    return damage


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "absent": Path.unlink,
    "a folder": _other_file(Path.mkdir),
    "a pipe": _other_file(os.mkfifo),
    "a device without end": _other_file(lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": _other_file(lambda path: path.symlink_to(path.name)),
    "a link to nothing": _other_file(lambda path: path.symlink_to("nowhere")),
    "empty": lambda path: path.write_bytes(b""),
    "random bytes": lambda path: path.write_bytes(random.Random(0).randbytes(4096)),
    "zeros, as after a crash": lambda path: path.write_bytes(bytes(4096)),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Planted(str(mark_of(path))))),
    "UTF-16": _rewritten(lambda content: content.decode("utf-8", "replace").encode("utf-16")),
    "Latin-1": _rewritten(lambda content: content.replace(b"e", b"\xe9")),
    "zeros within": _rewritten(lambda content: b"\0".join(bytes((letter,)) for letter in content)),
    "a web page": _rewritten(lambda _: b"<!DOCTYPE html>\n<title>404</title>\n"),
    "a pointer of git-lfs": _rewritten(lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
    "deep JSON": _rewritten(lambda _: b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    "a long number": _rewritten(lambda _: b'{"a": 1' + b"0" * 9999 + b"}"),
    "a list": _rewritten(lambda _: b"[1, 2]\n"),
    "a text": _rewritten(lambda _: b'"text"\n'),
    "null": _rewritten(lambda _: b"null\n"),
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


@contextmanager
def no_hang() -> Iterator[None]:
    """End a call that waits for ever, as for the other end of a pipe."""

    def late(*_: Any) -> None:
        raise TimeoutError("waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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
        with no_hang():
            fault = answer(call, folder, path.name, *names)
        fault = "executes it" if mark_of(path).exists() else fault
        if fault and not (what in fine and fault == "passes"):
            found.append(f"{what}: {fault}")
    return found
