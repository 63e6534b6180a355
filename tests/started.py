"""Commands of this checkout as processes of their own, without the seconds that each would import libraries for.

A process is forked from a server that has imported torch, transformers, Lightning, PEFT, mteb and Hydra, and nothing of
ours. It has its own output, environment, working folder and exit code.
"""

import gc
import io
import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TextIO

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
        print(json.dumps(request), file=server.requests, flush=True)
        code = int(server.answers.readline())
        return subprocess.CompletedProcess(words, code, "" if unread else out.read_text(), err.read_text())


def run_here(*words: str) -> subprocess.CompletedProcess:
    """Run `python <words>` (a file) within this process: what `start` returns, without the time that a start takes."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    argv, environment = sys.argv, dict(os.environ)
    sys.argv = [str(ROOT / words[0]), *words[1:]]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as left:
        code = left.code or 0
    finally:
        sys.argv = argv
        os.environ.clear()  # evaluate.py -m sets LOCAL_RANK: a later run would wait for processes that no one starts
        os.environ.update(environment)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


class Server(NamedTuple):
    """The ends by which the server is asked, and answers."""

    requests: TextIO
    answers: TextIO


SERVERS: list[Server] = []  # at most one


def _server() -> Server:
    """The server of this process, which ends when this one does."""
    if not SERVERS:
        process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        SERVERS.append(Server(process.stdin, process.stdout))
    return SERVERS[0]


def fork_server() -> None:
    """Make the server a fork of this process, so that what both need is imported once; not where ours are imported.

    It keeps no file of this process open, whose other end would else wait for it.
    """
    if any((ROOT / name / "__init__.py").is_file() for name in sys.modules if "." not in name):
        return
    import_libraries()
    asked, answered = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.dup2(asked[0], 0)
        os.dup2(answered[1], 1)
        os.closerange(3, 1024)
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]  # another tree has its own
        try:
            serve(os.fdopen(0), os.fdopen(1, "w"))
        finally:
            os._exit(0)
    os.close(asked[0])
    os.close(answered[1])
    SERVERS.append(Server(os.fdopen(asked[1], "w"), os.fdopen(answered[0])))


def import_libraries() -> None:
    """Import what commands need, and nothing of ours."""
    import hydra  # noqa: F401
    import mteb  # noqa: F401
    import pandas  # noqa: F401
    import peft  # noqa: F401
    import pytorch_lightning  # noqa: F401
    from transformers import AutoModel, AutoTokenizer, LlamaModel  # noqa: F401


def serve(requests: TextIO, answers: TextIO) -> None:
    """Fork a process per line of `requests`; its exit code is a line of `answers`."""
    gc.freeze()  # or every process copies the memory in which the collector counts
    gc.enable()
    while line := requests.readline():
        process = multiprocessing.get_context("fork").Process(target=become, args=(json.loads(line),))
        process.start()
        process.join()
        print(process.exitcode, file=answers, flush=True)


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
    try:
        if kind == "-c":
            exec(words[0], {"__name__": "__main__"})
        elif kind == "-m":
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(str(file), run_name="__main__")
    finally:
        # As an interpreter does when it ends. multiprocessing would first wait for child processes, of which joblib's
        # end after five idle minutes unless they are told here.
        threading._shutdown()  # type: ignore[attr-defined]


def _unread() -> int:
    """The end to write to of a pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


if __name__ == "__main__":
    import_libraries()
    serve(sys.stdin, sys.stdout)
