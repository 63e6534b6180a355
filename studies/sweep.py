"""The jobs of train.py and evaluate.py under Hydra: one, or those of a sweep, whatever launcher runs them.

A job may run in this process, in another or on another machine. What it says of itself is a file in the sweep's record,
<runs_dir>/.sweeps/<time>-<process>: `jobs.json` has the words of all jobs, `<number>.json` the state of one.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig

from cli.compose import CONF, composed, params_of_sweeps, plain
from cli.errors import UserError, explained, leave_if_unread
from cli.quoting import evaluate_words, quoted
from records.atomic import write_json
from records.run_folder import fixed_words, run_folder
from studies.launchers import IN_PLACE, launcher_words

RECORDS = ".sweeps"
RANKS = ("RANK", "SLURM_PROCID", "LOCAL_RANK")  # of the process within its job, as torchrun, Slurm and Lightning set it
STOPPED = (0, None, 128 + signal.SIGINT, 128 + signal.SIGTERM)  # by whoever stopped the sweep, without a fault
KILLED = "its process ended without a word (killed, out of memory, or out of time)"


class Jobs:
    """Runs one Hydra job after another, here or wherever a launcher calls it; one that fails does not stop the others.

    run: called with the resolved configuration of each job. program: whose configuration it is; the jobs of train.py
    have a folder each.
    """

    def __init__(self, run: Callable[[dict[str, Any]], None], program: str = "train") -> None:
        self._run, self._program = run, program
        self.record: Path | None = None  # of a sweep
        self._unwritten: dict[int, str] = {}  # jobs of this process whose state the disk did not take, and why

    def plan(self, words: Sequence[str]) -> None:
        """Write down the jobs of a sweep before the first of them starts. words: as Hydra sweeps over them."""
        parsed = OverridesParser.create().parse_overrides([*params_of_sweeps(words), *words])
        jobs = [list(job) for batch in BasicSweeper.split_arguments(parsed, None) for job in batch]
        runs_dir = Path(composed(self._program, jobs[0])["runs_dir"])
        record = runs_dir / RECORDS / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        write_json(record / "jobs.json", jobs)
        self.record = record.absolute()

    def run(self, cfg: DictConfig) -> None:
        """Run a job; in a sweep its error goes into the record, and the next job may start."""
        config, sweeping = plain(cfg), HydraConfig.get().mode is RunMode.MULTIRUN
        self._write("running")
        folder = None
        try:
            folder = _folder(config) if self._program == "train" else None
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
        jobs = read_record(self.record) if self.record else []
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
        first = next((os.environ[name] for name in RANKS if name in os.environ), "0") == "0"
        if self.record and (first or status == "failed"):  # of several processes that share a job, the first one counts
            number = HydraConfig.get().job.num
            try:
                write_json(self.record / f"{number}.json", {"status": status, "written": time.time(), **facts})
            except UserError as error:  # Hydra would print a trace; the next job would find the same disk
                self._unwritten[number] = facts.get("error", str(error))
                raise SystemExit(_report(error)) from error


def shard_runner(words: Sequence[str]) -> Callable[[Sequence[Sequence[str]], Callable[[dict[str, Any]], None]], None]:
    """Return what runs a job of evaluate.py for each of several lists of tasks, by the launcher among its `words`.

    It calls its second argument with the configuration of each. Raises `UserError` for a launcher that is not
    installed; so does what is returned, where jobs fail.
    """
    launcher = launcher_words(words, "evaluate")

    def start(dealt: Sequence[Sequence[str]], score: Callable[[dict[str, Any]], None]) -> None:
        jobs = Jobs(score, "evaluate")
        shards = ",".join(f"[{','.join(map(quoted, tasks))}]" for tasks in dealt)
        kept = [word for word in evaluate_words(words) if not word.startswith(("tasks=", "shards="))]
        swept = [*kept, f"tasks=choice({shards})", *["progress=false"] * bool(launcher)]
        jobs.plan(swept)
        sys.argv[1:] = [*swept, *IN_PLACE, "hydra.mode=MULTIRUN", *launcher]
        with jobs.told():
            hydra.main(config_path=str(CONF), config_name="evaluate", version_base="1.3")(jobs.run)()

    return start


def read_record(record: Path) -> list[dict[str, Any]]:
    """Return the jobs of a sweep: status (waiting, running, failed, done) and, where known, folder and error.

    own: the words that not all of its jobs have.
    """
    jobs, every = [], json.loads((record / "jobs.json").read_text(encoding="utf-8"))
    common = set.intersection(*map(set, every)) if len(every) > 1 else set()
    for number, words in enumerate(every):
        job = {"own": " ".join(word for word in words if word not in common), "status": "waiting"}
        with suppress(OSError, ValueError):
            job |= json.loads((record / f"{number}.json").read_text(encoding="utf-8"))
        jobs.append(job)
    return jobs


def _folder(config: dict[str, Any]) -> str | None:
    """The folder of the job's run; None where its objective makes another thing, such as a base."""
    if not (config["pooler"] and config["attn"]):
        return None
    hydra = HydraConfig.get()
    fixed = fixed_words(config, hydra.overrides.task, hydra.sweeper.get("params") or {})
    return str(run_folder(config, hydra.runtime.choices, fixed).path.absolute())


def _report(error: UserError) -> int:
    print("error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
    return 2
