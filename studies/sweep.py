"""The jobs of train.py and evaluate.py under Hydra: one, or those of a sweep, by whatever launcher."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from cli.compose import CONF, HOME, SWEEP, check_sweep, composed, flags_and_words, help_screen, late, plain
from cli.errors import UserError, explained

Run = Callable[[dict[str, Any], Sequence[str]], None]
FAILED = "POOLING_ABLATION_FAILED"  # environment: the file to which the jobs of a sweep add their failures


def start(program: str, arguments: Sequence[str], run: Run, as_typed: Callable[[list[str]], list[str]] = list) -> None:
    """Hand a command line to Hydra. run: called with a job's configuration and words.

    as_typed: makes overrides of words. Jobs of a sweep that fail stop no others, and are listed. Raises `UserError`.
    """
    if {"-h", "--help"} & set(arguments):
        print(help_screen(program))
        return
    flags, words = flags_and_words(f"{program}.py", arguments)
    several, words = bool({*SWEEP} & {*flags}), as_typed(words)
    swept = check_sweep(program, words, several)
    sys.argv[1:] = [*flags, *(late(words) if several else words)]
    if several and program == "train" and not any(word.startswith("axes=") for word in words):
        sys.argv.append(f"axes=[{','.join(swept)}]")
    if several:
        runs_dir = composed(program, [word for word in words if word.startswith("runs_dir=")])["runs_dir"]
        os.environ[FAILED] = str(Path(runs_dir, f".failed-{os.getpid()}").absolute())
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HOME), os.environ.get("PYTHONPATH", "")])
    hydra.main(config_path=str(CONF), config_name=program, version_base="1.3")(partial(_job, run))()
    if several and (failed := Path(os.environ[FAILED])).is_file():
        lines = failed.read_text(encoding="utf-8").strip("\n").split("\n")
        failed.unlink()
        print(*(f"failed: {line}" for line in lines), sep="\n", file=sys.stderr)
        raise UserError(f"{len(lines)} jobs of the sweep failed; the same command goes on from what is finished.")


def _job(run: Run, cfg: DictConfig) -> None:
    """Run a job of Hydra's; in a sweep its error goes into the list, and the next job may start."""
    job = HydraConfig.get()
    sweeping, words = job.mode is RunMode.MULTIRUN, list(job.overrides.task)
    try:
        with explained():
            run(plain(cfg), words)
        return
    except UserError as error:
        fault = " ".join(str(error).split())
        print(f"error: {fault}", file=sys.stderr, flush=True)
        if not sweeping:
            raise SystemExit(getattr(error, "code", 2)) from error
    except Exception as error:
        if not sweeping:
            raise
        traceback.print_exc()
        fault = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    file = Path(os.environ[FAILED])
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(f"{' '.join(words)}: {fault}\n")
