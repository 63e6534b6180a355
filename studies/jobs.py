"""The commands of a study: train each design with each seed, then score the runs and what they started from."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cli.compose import check_overrides, composed, flat, options, own_keys, plain
from cli.errors import UserError, nearest
from cli.limits import SWITCH, Limit, check_limits
from cli.quoting import evaluate_words, quoted, train_words
from records.identity import BOOKKEEPING, below
from records.run_folder import choices_of, fixed_words, model_name, run_folder, whole_study
from studies.workers import Job

Config = dict[str, Any]
OF_BOTH = ("cache_dir",)
OF_A_JOB = {  # groups and keys that a study sets job by job -> what is given in their place
    **dict.fromkeys(("seed", "axes"), "Give seeds=[...]."),
    **dict.fromkeys(("pooler", "attn", "design", "sweep"), "Give designs=[...]."),
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

    Of seeds=auto those of its first look. Training comes first, since it takes longest; runs of one attention share the
    forward passes of their common start. Raises `UserError` for designs, seeds or words that there are not.
    """
    limits = {"jobs": Limit(1, "one per core"), "max_seeds": Limit(3, largest=1000)}
    check_limits(config, limits, {"untrained": SWITCH, "plan": SWITCH})
    seeds, designs = [0, 1, 2] if config["seeds"] == "auto" else config["seeds"], config["designs"]
    if not (isinstance(seeds, list) and seeds and all(type(seed) is int and seed >= 0 for seed in seeds)):
        raise UserError(f"seeds={seeds} must be a list of whole numbers, such as [0,1,2], or auto.")
    if not (isinstance(designs, list) and designs):
        raise UserError(f"designs={designs} must be a list of designs, such as [eos-causal,multilayer-bi].")
    composed("evaluate", evaluate_words(["run=x", *words.evaluate]))
    training, scoring = list[Job](), list[Job]()
    starts: dict[str, dict[str, str]] = {}  # attention -> job that trains a run -> its folder
    of_folder: dict[str, str] = {}  # folder of the runs -> their design
    for design in dict.fromkeys(designs):
        typed, whole, folder = runs_of(str(design), words)
        same = of_folder.setdefault(str(folder), design)
        if same != design:
            raise UserError(f"The designs {same} and {design} are the same runs, in {folder}. Leave one out.")
        for seed in dict.fromkeys(seeds):
            run, name = str(folder / f"seed{seed}"), f"{design} seed {seed}"
            train = ("train.py", *typed, f"seed={seed}", "trainer.progress=lines")
            training.append(Job(f"train {name}", train, run=run))
            evaluate = ("evaluate.py", f"run={run}", *words.evaluate, "progress=false")
            scoring.append(Job(f"score {name}", evaluate, (f"train {name}",)))
            starts.setdefault(whole["attn"]["name"], {})[f"train {name}"] = run
    untrained = []
    for attn, runs in starts.items():
        several = ",".join(map(quoted, runs.values()))
        evaluate = ("evaluate.py", f"run=[{several}]", "untrained=only", *words.evaluate, "progress=false")
        untrained.append(Job(f"score the starts of {attn}", evaluate, tuple(runs)))
    return [*training, *(untrained if config["untrained"] else []), *scoring]


def runs_of(design: str, words: Words) -> tuple[list[str], Config, Path]:
    """Return the words of train.py for a design of a study, its configuration, and the folder of its runs."""
    typed = [*design_words(design), *words.train]
    choice = train_words(typed)
    check_overrides("train", choice)
    whole = plain(composed("train", choice))
    return typed, whole, run_folder(whole, choices_of(choice), fixed_words(whole, choice)).path.parent


def compared(designs: Sequence[str], words: Words) -> Config:
    """Return keys of `analysis.settings.Settings`: where the scores of these designs of a study are, and their names.

    What the designs' own words set is a factor, beside pooler and attention.
    """
    results = composed("evaluate", evaluate_words(["run=x", *words.evaluate]))["results"]
    models, places, configs = list[str](), list[Path](), list[Config]()
    for _, config, folder in (runs_of(design, words) for design in designs):
        models.append(model_name(whole_study(folder.parent, config["study"]), folder.name).replace("/", "__"))
        places.append(Path(results or folder.parent / "scores"))
        configs.append(flat(config))
    varying = {key for one in configs for key in one if any(key not in c or c[key] != one[key] for c in configs)}
    further = [key for key in sorted(varying) if not below(key, (*BOOKKEEPING, "pooler", "attn"))]
    return {"scores": tuple(dict.fromkeys(places)), "models": tuple(models), "factors": ("pooler", "attn", *further)}


def design_words(design: str) -> list[str]:
    """Return the words of train.py for an option of design=, <pooler>-<attn>, or <option of design=>-<attn>."""
    if design in options("design"):
        return [f"design={design}"]
    what, _, attn = design.rpartition("-")
    cells = [f"{one}-{other}" for one in (*options("pooler"), *options("design")) for other in options("attn")]
    if design not in cells:
        raise UserError(f"There is no design '{design}'. {nearest(design, [*options('design'), *cells])}")
    return [f"{'pooler' if what in options('pooler') else 'design'}={what}", f"attn={attn}"]
