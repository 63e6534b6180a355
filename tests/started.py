"""Commands of this checkout as processes of their own, without the seconds that each would import libraries for.

A process is forked from a server that has imported torch, transformers, Lightning, PEFT and Hydra, and nothing of ours.
It has its own output, environment, working folder and exit code, and ends as an interpreter ends.
"""

import gc
import json
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
    *words: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None, unread: bool = False
) -> subprocess.CompletedProcess:
    """Run `python <words>` (a file, -m and a module, or -c and a program) to its end.

    unread: its standard output is a pipe whose reader has gone.
    """
    with TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        request = {"words": words, "cwd": str(cwd), "env": dict(os.environ if env is None else env)}
        request |= {"out": None if unread else str(out), "err": str(err)}
        server = _server()
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
        if (pid := os.fork()) == 0:
            become(json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def become(request: Mapping[str, Any]) -> None:
    """Be the process asked for, until its program ends."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    reader, writer = os.pipe()
    os.close(reader)
    if request["out"] is not None:
        writer = os.open(request["out"], os.O_WRONLY | os.O_CREAT)
    errors = os.open(request["err"], os.O_WRONLY | os.O_CREAT)
    for place, number in ((os.open(os.devnull, os.O_RDONLY), 0), (writer, 1), (errors, 2)):
        os.dup2(place, number)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    kind, *words = request["words"] if request["words"][0] in ("-m", "-c") else ("", *request["words"])
    sys.argv[:] = words
    sys.path[0] = request["cwd"] if kind else str(Path(words[0]).resolve().parent)
    if kind == "-c":
        exec(words[0], {"__name__": "__main__"})
    elif kind == "-m":
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    serve()
