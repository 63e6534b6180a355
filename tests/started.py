"""Commands of this checkout as processes of their own, without the seconds that each would import libraries for.

A process is forked from a server that has imported torch, transformers, Lightning, PEFT and Hydra, and nothing of ours.
It has its own output, environment, working folder and exit code.
"""

import gc
import json
import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def start(
    *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, unread: bool = False
) -> subprocess.CompletedProcess:
    """Run `python <words>` (a file, -m and a module, or -c and a program) to its end.

    cwd: the tree whose program it is, and where it runs; None: this checkout's program, run in the current folder.
    unread: its output is a pipe whose reader has gone.
    """
    with TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        request = {"words": words, "cwd": str(cwd or Path.cwd()), "tree": str(cwd or ROOT)}
        server = _server()
        request |= {"env": dict(os.environ if env is None else env)}
        request |= {"out": None if unread else str(out), "err": str(err)}
        print(json.dumps(request), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(words, code, "" if unread else out.read_text(), err.read_text())


@cache
def _server() -> subprocess.Popen:
    """The server of this process, which ends when its input does."""
    return subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def serve() -> None:
    """Fork a process per line of standard input; its exit code is a line of standard output."""
    import hydra  # noqa: F401
    import peft  # noqa: F401
    import pytorch_lightning  # noqa: F401
    from transformers import AutoModel, AutoTokenizer, LlamaModel  # noqa: F401

    gc.freeze()  # or every process copies the memory in which the collector counts
    while line := sys.stdin.readline():
        process = multiprocessing.get_context("fork").Process(target=become, args=(json.loads(line),))
        process.start()
        process.join()
        print(process.exitcode, flush=True)


def become(request: Mapping[str, Any]) -> None:
    """Be the process asked for."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    multiprocessing.process.ORIGINAL_DIR = request["cwd"]  # where processes of its own will begin
    for number, path in ((1, request["out"]), (2, request["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT) if path else _unread(), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", buffering=1, closefd=False)
    kind, *words = request["words"] if request["words"][0] in ("-m", "-c") else ("", *request["words"])
    sys.argv[:] = words
    file = Path(request["tree"], words[0])
    first = request["tree"] if kind else str(file.parent)
    sys.path[:1] = [first, *filter(None, request["env"].get("PYTHONPATH", "").split(os.pathsep))]
    if kind == "-c":
        exec(words[0], {"__name__": "__main__"})
    elif kind == "-m":
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(file), run_name="__main__")


def _unread() -> int:
    """The end to write to of a pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


if __name__ == "__main__":
    serve()
