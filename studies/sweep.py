"""The jobs of train.py and evaluate.py under Hydra: one, or those of a sweep, whatever launcher runs them.

A job may run in this process, in another or on another machine. What it says of itself is a file in the sweep's record,
<runs_dir>/.sweeps/<time>-<process>: `jobs.json` has the words of all jobs, `folders.json` the folders of their runs,
`<number>.json` the state of one job, `progress.json` the process of the sweep for as long as that is there.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig

from cli.compose import composed, params_of_sweeps, plain
from cli.errors import UserError, explained, leave_if_unread
from records.files import write_json
from records.progress import FILE, Progress, write_progress
from records.run_folder import choices_of, fixed_words, run_folder

RECORDS = ".sweeps"
RANKS = ("RANK", "SLURM_PROCID", "LOCAL_RANK")  # of the process within its job, as torchrun, Slurm and Lightning set it
STOPPED = (0, None, 128 + signal.SIGINT, 128 + signal.SIGTERM)  # by whoever stopped the sweep, without a fault
BEAT = 60.0  # seconds between two signs of life of a sweep: it may run on another machine than its reader
KILLED = "its process ended without a word (killed, out of memory, or out of time)"


class Jobs:
    """Runs one Hydra job after another, here or wherever a launcher calls it; one that fails does not stop the others.

    run: called with the resolved configuration of each job. program: whose configuration it is; the jobs of train.py
    have a folder each.
    """

    def __init__(self, run: Callable[[dict[str, Any]], None], program: str = "train") -> None:
        self._run, self._program = run, program
        self.record: Path | None = None  # of a sweep, kept by the first of several processes
        self._planned: list[list[str]] = []
        self._unwritten: dict[int, str] = {}  # jobs of this process whose state is not in the record, and their error

    def plan(self, words: Sequence[str]) -> None:
        """Write down the jobs of a sweep before the first of them starts. words: as Hydra sweeps over them."""
        parsed = OverridesParser.create().parse_overrides([*params_of_sweeps(words), *words])
        jobs = [list(job) for batch in BasicSweeper.split_arguments(parsed, None) for job in batch]
        self._planned = jobs
        if not _first():  # torchrun and srun let each process plan
            return
        runs_dir = Path(composed(self._program, jobs[0])["runs_dir"])
        record = runs_dir / RECORDS / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        if self._program == "train":
            swept = {word.partition("=")[0].lstrip("+") for word in {*chain(*jobs)} - _common(jobs)}
            params = [word.partition("=")[0] for word in params_of_sweeps(words)]
            write_json(record / "folders.json", [_planned_folder(job, swept, params) for job in jobs])
        write_json(record / "jobs.json", jobs)
        self.record = record.absolute()

    def run(self, cfg: DictConfig) -> None:
        """Run a job; in a sweep its error goes into the record, and the next job may start."""
        config, hydra = plain(cfg), HydraConfig.get()
        sweeping = hydra.mode is RunMode.MULTIRUN
        self._write("running")
        folder = None
        try:
            if self._program == "train":
                params = hydra.sweeper.get("params") or {}
                folder = _folder(config, hydra.runtime.choices, hydra.overrides.task, params)
            self._write("running", folder=folder)
            with explained():
                self._run(config)
        except BrokenPipeError:
            leave_if_unread()  # Hydra would print a trace
            raise
        except UserError as error:
            if not sweeping:
                raise SystemExit(_report(error)) from error
            _report(error)
            self._write("failed", error=" ".join(str(error).split()), folder=folder)
        except Exception as error:
            if not sweeping:
                raise
            traceback.print_exc()
            last = f"{type(error).__name__}: {' '.join(str(error).split())}"
            self._write("failed", error=last[:500], folder=folder)
        else:
            self._write("done", folder=folder)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Run Hydra within it: at its end the jobs of a sweep that failed are listed, each with its last error.

        Raises `UserError` where there are any, also where the launcher gave up because the process of one was killed.
        """
        try:
            with _alive(self.record):
                yield
        except SystemExit as error:
            failed = [] if error.code in STOPPED else self._failed()
            if not failed:
                raise
            raise UserError(self._told(failed)) from error
        if failed := self._failed():
            raise UserError(self._told(failed))

    def _failed(self) -> list[dict[str, Any]]:
        return [job for job in self._jobs() if job["status"] in ("failed", "running")]

    def _jobs(self) -> list[dict[str, Any]]:
        jobs = read_record(self.record) if self.record else _named(self._planned)
        for number, error in self._unwritten.items():
            jobs[number] |= {"status": "failed", "error": error}
        return jobs

    def _told(self, failed: Sequence[dict[str, Any]]) -> str:
        jobs = self._jobs()
        for job in failed:
            print(f"failed: {job['own']}: {job.get('error', KILLED)}", file=sys.stderr)
        done = sum(job["status"] == "done" for job in jobs)
        return (
            f"{len(failed)} of the sweep's {len(jobs)} jobs failed; their last errors stand above. {done} ended well. "
            "What is finished is kept: the same command goes on."
        )

    def _write(self, status: str, **facts: Any) -> None:
        if self._planned and not self.record and status == "failed":
            self._unwritten[HydraConfig.get().job.num] = facts["error"]
        if self.record and (_first() or status == "failed"):
            number = HydraConfig.get().job.num
            try:
                write_json(self.record / f"{number}.json", {"status": status, "written": time.time(), **facts})
            except UserError as error:  # Hydra would print a trace; the next job would find the same disk
                self._unwritten[number] = facts.get("error", str(error))
                raise SystemExit(_report(error)) from error


def read_record(record: Path) -> list[dict[str, Any]]:
    """Return the jobs of a sweep: status (waiting, running, failed, done) and, where known, folder and error.

    own: the words that not all of its jobs have.
    """
    jobs = _named(json.loads((record / "jobs.json").read_text(encoding="utf-8")))
    with suppress(OSError, ValueError):
        for job, folder in zip(jobs, json.loads((record / "folders.json").read_text(encoding="utf-8")), strict=True):
            job["folder"] = folder
    for number in range(len(jobs)):
        with suppress(OSError, ValueError):
            jobs[number] |= json.loads((record / f"{number}.json").read_text(encoding="utf-8"))
    return jobs


def _named(jobs: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    common = _common(jobs) if len(jobs) > 1 else set()
    return [{"own": " ".join(word for word in words if word not in common), "status": "waiting"} for words in jobs]


def _common(jobs: Sequence[Sequence[str]]) -> set[str]:
    return set.intersection(*map(set, jobs))


def _first() -> bool:
    """Tell whether this is the only process of a job, or the first of several: that one counts."""
    return next((os.environ[name] for name in RANKS if name in os.environ), "0") == "0"


@contextmanager
def _alive(record: Path | None) -> Iterator[None]:
    """Keep progress.json in the record of a sweep, which says that the process is there for which its jobs wait."""
    ended = threading.Event()

    def beat(record: Path) -> None:
        while not ended.is_set():
            with suppress(UserError):  # a job says what is wrong with the disk
                write_progress(record, Progress(0, 0))
            ended.wait(BEAT)
        with suppress(OSError):
            (record / FILE).unlink()

    threads = [threading.Thread(target=beat, args=(record,), daemon=True)] if record else []
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _planned_folder(words: Sequence[str], swept: Iterable[str], params: Iterable[str]) -> str | None:
    """The folder that a job of train.py will state itself; None where that is not known before it runs."""
    with suppress(Exception):  # a job that cannot be composed fails in its turn, and stops no other
        config = plain(composed("train", words))
        return _folder({**config, "axes": config["axes"] or [*swept]}, choices_of(words), words, params)
    return None


def _folder(
    config: dict[str, Any], choices: Mapping[str, str | None], words: Sequence[str], params: Iterable[str]
) -> str | None:
    """The folder of a job's run; None where its objective makes another thing, such as a base."""
    if not (config["pooler"] and config["attn"]):
        return None
    return str(run_folder(config, choices, fixed_words(config, words, params)).path.absolute())


def _report(error: UserError) -> int:
    print("error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
    return 2
