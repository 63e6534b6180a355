"""The commands of a study: train each design with each seed, then score the runs and what they started from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.manifests.compared_keys import factors_between
from cli.compose import composed, groups, options, own_keys, plain, quoted, readable, with_recipe
from cli.errors import UserError, nearest
from cli.limits import Limit, check_limits
from records.run_folder import folder_of_scores, run_folder
from studies.workers import Job

Config = dict[str, Any]
Designs = dict[Path, tuple[str, list[str], Config]]  # folder of its runs -> its name as given, its words, all its keys
OF_A_JOB = {  # groups and keys that a study sets job by job -> what is given in their place
    **dict.fromkeys(("seed", "axes"), "Give seeds=[...]."),
    **dict.fromkeys(("pooler", "attn", "design"), "Give designs=[...]."),
    **dict.fromkeys(("run", "foreign", "variants", "threads", "progress", "check", "resume"), "Leave it out."),
}


class Words(NamedTuple):
    """A command line of study.py by program."""

    study: list[str]
    train: list[str]
    evaluate: list[str]


def split_words(arguments: Sequence[str]) -> Words:
    """Give each word to the program whose key it is. Raises `UserError` for a key of none, or that a study sets."""
    of_study, scoring = own_keys("study"), own_keys("evaluate")
    of_train = {*own_keys("train"), *own_keys("encoder"), *groups()} - {"benchmark"}
    words = Words([], [], [])
    for argument in arguments:
        whole = argument.partition("=")[0].lstrip("+~")
        first = whole.split(".")[0]
        if first in of_study:
            words.study.append(argument)
        elif whole in OF_A_JOB:
            raise UserError(f"{whole}= is set by study.py, job by job. {OF_A_JOB[whole]}")
        elif first in scoring and first not in of_train:
            words.evaluate.append(argument)
        elif first not in of_train and "=" in argument:
            raise UserError(f"There is no key '{first}'. {nearest(first, {*of_study, *scoring, *of_train})}")
        else:
            words.train.append(argument)
            words.evaluate.extend([argument] * (first == "cache_dir"))
    return words


def study_jobs(config: Config, words: Words) -> list[Job]:
    """Return the jobs of a study in the order in which they are worth starting. config: conf/study.yaml, composed.

    Seed by seed: runs are trained, then scored, then all scores so far make a report. Raises `UserError`.
    """
    check_limits(config, {"jobs": Limit(1, "as many as fit"), "seeds": Limit(0, each=True)}, {})
    if not (isinstance(config["designs"], list) and config["designs"]):
        raise UserError(f"designs={config['designs']} must be a list of designs, such as [eos-causal,multilayer-bi].")
    designs, seeds, jobs = _designs(config["designs"], words.train), list(dict.fromkeys(config["seeds"])), list[Job]()
    for count, seed in enumerate(seeds, 1):
        jobs += _of_seed(designs, seed, words, config["untrained"])
        if len(designs) > 1:
            scored = tuple(job.name for job in jobs if job.name.startswith("score "))
            report = _report_words(designs, ",".join(map(str, seeds[:count])), words)
            jobs.append(Job(f"report after seed {seed}", report, scored))
    return jobs


def _designs(names: Sequence[Any], train: list[str]) -> Designs:
    designs: Designs = {}
    for name in dict.fromkeys(map(str, names)):
        typed = with_recipe([*design_words(name), *train])
        words = readable(typed, several=False)
        config = plain(composed("train", words))
        folder = run_folder(config, words).parent
        if folder in designs:
            raise UserError(f"The designs {designs[folder][0]} and {name} are the same runs. Leave one out.")
        designs[folder] = name, typed, config
    return designs


def _of_seed(designs: Designs, seed: int, words: Words, untrained: bool) -> list[Job]:
    training, scoring = list[Job](), list[Job]()
    runs = [quoted(str(folder / f"seed{seed}")) for folder in designs]
    for run, (name, of_design, _) in zip(runs, designs.values(), strict=True):
        train = ("train.py", *of_design, f"seed={seed}", "trainer.progress=lines")
        training.append(Job(f"train {name} seed {seed}", train))
        evaluate = ("evaluate.py", f"run={run}", *words.evaluate, "progress=false")
        scoring.append(Job(f"score {name} seed {seed}", evaluate, (training[-1].name,)))
    evaluate = ("evaluate.py", f"run=[{','.join(runs)}]", "untrained=only", *words.evaluate, "progress=false")
    start = Job(f"score the starts of seed {seed}", evaluate, tuple(job.name for job in training))
    return [*training, *([start] if untrained else []), *scoring]


def _report_words(designs: Designs, seeds: str, words: Words) -> tuple[str, ...]:
    given = [word.partition("=")[2] for word in words.evaluate if word.startswith("results=")]
    studies = list(dict.fromkeys(folder.parent for folder in designs))
    scores = given[-1:] or [quoted(str(study / "scores")) for study in studies]
    models = [quoted(folder_of_scores(folder, config["study"])) for folder, (*_, config) in designs.items()]
    factors = factors_between([config for *_, config in designs.values()])
    chosen = [f"models=[{','.join(models)}]", f"against={models[0]}", f"factors=[{','.join(factors)}]"]
    out = f"out={quoted(str(studies[0] / 'tables'))}"
    return ("analysis/__main__.py", f"scores=[{','.join(scores)}]", *chosen, f"seeds=[{seeds}]", out, "report=true")


def design_words(design: str) -> list[str]:
    """Return the words of train.py for an option of design=, <pooler>-<attn>, or <option of design=>-<attn>."""
    if design in options("design"):
        return [f"design={design}"]
    what, _, attn = design.rpartition("-")
    cells = [f"{one}-{other}" for one in (*options("pooler"), *options("design")) for other in options("attn")]
    if design not in cells:
        raise UserError(f"There is no design '{design}'. {nearest(design, [*options('design'), *cells])}")
    return [f"{'pooler' if what in options('pooler') else 'design'}={what}", f"attn={attn}"]
