"""The commands of a study: train each design with each seed, then score the runs and what they started from."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cli.compose import composed, options, own_keys, plain, quoted, readable
from cli.errors import UserError, nearest
from cli.limits import Limit, check_limits
from records.run_folder import run_folder
from studies.workers import Job, cores, run_jobs

Config = dict[str, Any]
OF_BOTH = ("cache_dir",)
OF_A_JOB = {  # groups and keys that a study sets job by job -> what is given in their place
    **dict.fromkeys(("seed", "axes"), "Give seeds=[...]."),
    **dict.fromkeys(("pooler", "attn", "design"), "Give designs=[...]."),
    **dict.fromkeys(("run", "foreign", "readings", "threads", "progress"), "Leave it out, or use python evaluate.py."),
    **dict.fromkeys(("check", "resume"), "Leave it out, or use python train.py."),
}


@dataclass(frozen=True)
class Words:
    """A command line of study.py by program: its own words, those of train.py, those of evaluate.py."""

    study: list[str]
    train: list[str]
    evaluate: list[str]


def split_words(arguments: Sequence[str]) -> Words:
    """Give each word to the program whose key it is; what neither study.py nor evaluate.py has is train.py's.

    Raises `UserError` for what is no key=value, or is a word that a study sets itself.
    """
    of_study, scoring = own_keys("study"), own_keys("evaluate")
    of_train = {*own_keys("train"), *own_keys("encoder")}
    words = Words([], [], [])
    for argument in arguments:
        key, equals, _ = argument.partition("=")
        if not equals:
            raise UserError(f"The argument '{argument}' is no key=value. See python study.py --help.")
        whole, first = key.lstrip("+~"), key.lstrip("+~").split(".")[0]
        if first in of_study:
            words.study.append(argument)
        elif whole in OF_A_JOB:
            raise UserError(f"{whole}= is set by study.py, job by job. {OF_A_JOB[whole]}")
        elif first in scoring and first not in of_train:
            words.evaluate.append(argument)
        elif first not in of_train and get_close_matches(first, of_study, n=1, cutoff=0.8):
            raise UserError(f"There is no key '{first}'. {nearest(first, of_study)}")
        else:
            words.train.append(argument)
            words.evaluate.extend([argument] * (first in OF_BOTH))
    return words


def study_jobs(config: Config, words: Words) -> list[Job]:
    """Return the jobs of a study in the order in which they are worth starting. config: conf/study.yaml, composed.

    Training comes first, since it takes longest; runs of one attention share the forward passes of their common start.
    Raises `UserError` for designs, seeds or words that there are not.
    """
    check_limits(config, {"jobs": Limit(1, "one per core"), "seeds": Limit(0, each=True)}, {})
    if not (isinstance(config["designs"], list) and config["designs"]):
        raise UserError(f"designs={config['designs']} must be a list of designs, such as [eos-causal,multilayer-bi].")
    training, scoring = list[Job](), list[Job]()
    starts: dict[str, dict[str, str]] = {}  # attention -> job that trains a run -> its folder
    of_folder: dict[Path, str] = {}  # folder of the runs -> their design
    for design in dict.fromkeys(map(str, config["designs"])):
        typed = [*design_words(design), *words.train]
        whole = plain(composed("train", readable(typed)))
        folder = run_folder(whole, readable(typed)).path.parent
        if of_folder.setdefault(folder, design) != design:
            raise UserError(f"The designs {of_folder[folder]} and {design} are the same runs. Leave one out.")
        for seed in dict.fromkeys(config["seeds"]):
            run, train = str(folder / f"seed{seed}"), f"train {design} seed {seed}"
            training.append(Job(train, ("train.py", *typed, f"seed={seed}", "trainer.progress=lines")))
            evaluate = ("evaluate.py", f"run={quoted(run)}", *words.evaluate, "progress=false")
            scoring.append(Job(f"score {design} seed {seed}", evaluate, (train,)))
            starts.setdefault(whole["attn"]["name"], {})[train] = run
    untrained = []
    for attn, runs in starts.items():
        several = ",".join(map(quoted, runs.values()))
        evaluate = ("evaluate.py", f"run=[{several}]", "untrained=only", *words.evaluate, "progress=false")
        untrained.append(Job(f"score the starts of {attn}", evaluate, tuple(runs)))
    return [*training, *(untrained if config["untrained"] else []), *scoring]


def design_words(design: str) -> list[str]:
    """Return the words of train.py for an option of design=, <pooler>-<attn>, or <option of design=>-<attn>."""
    if design in options("design"):
        return [f"design={design}"]
    what, _, attn = design.rpartition("-")
    cells = [f"{one}-{other}" for one in (*options("pooler"), *options("design")) for other in options("attn")]
    if design not in cells:
        raise UserError(f"There is no design '{design}'. {nearest(design, [*options('design'), *cells])}")
    return [f"{'pooler' if what in options('pooler') else 'design'}={what}", f"attn={attn}"]


def run(jobs: Sequence[Job], count: int | None) -> None:
    """Run the jobs side by side, a line for each that ends. count: at a time; None: one per core.

    Raises `UserError` that names those that failed.
    """
    os.environ.setdefault("TQDM_DISABLE", "1")  # mteb's own bars; tqdm reads it when it is first imported
    done = 0

    def ended(job: Job, code: int, seconds: float) -> None:
        nonlocal done
        done += 1
        how = "ended" if code == 0 else f"FAILED with exit code {code}"
        print(f"[{done} of {len(jobs)}] {job.name} {how} after {seconds:.0f} s", flush=True)

    count = count or cores()
    print(f"{len(jobs)} jobs, {count} at a time.", flush=True)
    codes = run_jobs(jobs, count, ended)
    failed = [job.name for job in jobs if codes.get(job.name, 0)]
    if failed:
        raise UserError(
            f"{len(failed)} of {len(jobs)} jobs failed ({', '.join(failed)}); their errors stand above. "
            "What is finished is kept: the same command goes on."
        )
