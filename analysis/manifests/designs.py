"""Runs and designs, as their manifests say; the names of designs in the tables, and their order."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.manifests.compared_keys import NAMED, factor_value, profile
from analysis.names import listed
from cli.errors import UserError
from records.earlier_runs import OTHER_RUNS
from records.files import read_object
from records.manifest import MANIFEST_VERSION, check_seal

NOTHING = ("absent", "none", "null")  # values of a factor that is not there: a name leaves them out
UNTRAINED = " (untrained)"  # ends the name of a reference
OF_AN_ENCODER = ("pooler.", "reference_fault.", "attn.")  # words of a study's folder that its name does not say
RUNNING = "running"  # the status of a run that is not finished
OURS = re.compile(r"seed\d+@[0-9a-f]{8}(-\w+)?$")  # as evaluate.py names the folder of a run's scores


@dataclass(frozen=True)
class Run:
    """The manifest of a run, from its folder or from the copy with its scores."""

    seed: str
    path: Path
    manifest: dict[str, Any] = field(repr=False)

    @property
    def trained(self) -> bool:
        """Tell whether it is more than an untrained reference."""
        return bool(self.manifest["status"] != "untrained")

    @cached_property
    def profile(self) -> dict[str, str]:
        """The keys that the control rule compares, as text."""
        return profile(self.manifest)


@dataclass(frozen=True)
class Design:
    """The thing that is compared. `model` is its own name (folder or csv); the factors come from our manifest."""

    model: str
    study: str = ""
    pooler: str = ""
    attn: str = ""
    trained: bool = True
    factors: dict[str, str] = field(default_factory=dict)  # factor -> its value, pooler and attn by name
    runs: tuple[Run, ...] = ()  # one per seed; none for scores without a manifest

    @property
    def parameters(self) -> int | None:
        """Trainable parameters, of adapter and head together; None where no manifest says."""
        stated = (run.manifest["parameters"] for run in self.runs if "parameters" in run.manifest)
        return next((int(parts["adapter"] + parts["head"]) for parts in stated), None)


def read_manifest(path: Path) -> Run:
    """Return the run that a manifest.json describes.

    Raises `UserError` for a manifest of another version of this program, and for one that was edited by hand.
    """
    manifest = read_object(path, "Score the run again with evaluate.py.")
    version = manifest.get("manifest_version")
    if version != MANIFEST_VERSION:
        raise UserError(
            f"{path} is of version {version}; this program reads version {MANIFEST_VERSION}."
            " Train and score the run again."
        )
    check_seal(manifest, path)
    return Run(str(manifest["seed"]), path, manifest)


def no_manifest(folder: Path) -> UserError:
    """Return the error for a run, or scores of one, whose manifest is gone."""
    return UserError(f"{folder} has no manifest.json, so nothing shows what was run. Make it again, or move it away.")


def design_of(runs: Sequence[Run], model: str, factors: Sequence[str]) -> Design:
    """Return the design of runs that differ in their seeds: what the first says."""
    first = runs[0]
    study, pooler, attn = (str(first.manifest[key]) for key in ("study", "pooler", "attn"))
    values = {factor: factor_value(first.manifest, factor) for factor in factors}
    return Design(model, study, pooler, attn, first.trained, values, tuple(runs))


def labelled(designs: Mapping[str, Design]) -> dict[str, Design]:
    """Return label -> design, in the order given. designs: by model.

    A label is `<pooler>-<attn>` for our own, and ` <key>=<value>` for further factors that vary, unless the value is
    that of most designs (`usual_note` says so). Keys of pooler, tokens and attention in the study's name stand
    before these: `mean-bi pooler.pool_eos-false`. Two of ours that would have one label are followed by the other
    words in which their folders differ. Of studies with other names every model keeps its own.
    """
    every = list(designs.values())
    further, usual = _further([design for design in every if design.pooler]), _usual_values(every)
    names = {model: _name(design, further, usual) for model, design in designs.items()}
    for label, number in Counter(names.values()).items():
        names |= _apart(label, [d for d in every if names[d.model] == label]) if number > 1 else {}
    count = Counter(names.values())
    if any(count[names[model]] > 1 for model, design in designs.items() if design.pooler):
        names |= {model: model for model, design in designs.items() if design.pooler}
    return {names[model]: design for model, design in designs.items()}


def _apart(label: str, twins: Sequence[Design]) -> dict[str, str]:
    """Return model -> label with the words of its study's folder that not all twins have."""
    words = {design.model: design.study.split("+") for design in twins}
    shared = set.intersection(*map(set, words.values()))
    if not all(design.pooler and words[design.model][0] in shared for design in twins):
        return {}
    end = UNTRAINED if label.endswith(UNTRAINED) else ""
    own = {model: [label.removesuffix(end), *(w for w in of if w not in shared)] for model, of in words.items()}
    return {model: " ".join(parts) + end for model, parts in own.items()}


def _name(design: Design, further: dict[str, str], usual: dict[str, str]) -> str:
    """Return `<pooler>-<attn>`, or the model's own name, with the values of further factors: `eos-bi tokens=mean`.

    A factor that a design lacks, such as init.merge=none, is not named; of a run its study (`_studies`). further:
    key -> its word in the table; usual: key -> the value that needs no naming.
    """
    name = f"{design.pooler}-{design.attn}" if design.pooler else design.model
    for word in design.study.split("+")[1:] if design.pooler else ():  # another encoder under the same two names
        if word.startswith(OF_AN_ENCODER) and not any(word.startswith(f"{key}-") for key in design.factors):
            name += f" {word}"
    for key, word in further.items():
        value = design.factors.get(key, "absent")
        if value not in NOTHING and value != usual.get(key):
            name += f" {word}={_studies(value) if key in OTHER_RUNS and key != 'init.merge' else value}"
    return name if design.trained or name.endswith(UNTRAINED) else f"{name}{UNTRAINED}"


def _studies(runs: str) -> str:
    """Return what tells named runs apart: the names of their studies, or the last word that a sweep added to each."""
    studies = [run.partition("/")[0].split("+") for run in runs.split(",")]
    ends = 0 if len({study[0] for study in studies}) == len(studies) > 1 else -1
    return ",".join(study[ends] for study in studies)


def _usual_values(designs: Iterable[Design]) -> dict[str, str]:
    """Return factor -> the value that more than half of our own designs have, so that names need not say it."""
    ours = [design for design in designs if design.pooler]
    shown = [design for design in ours if design.trained] or ours
    usual = {}
    for key in _further(ours):
        value, count = Counter(design.factors.get(key, "absent") for design in shown).most_common(1)[0]
        if 2 * count > len(shown):
            usual[key] = value
    return usual


def usual_note(designs: Iterable[Design]) -> list[str]:
    """Return the sentence that says what names leave out; none where they leave out nothing but what is not there."""
    values = [f"{key} is {value}" for key, value in _usual_values(designs).items() if value not in NOTHING]
    return [f"Where a name does not say otherwise, {listed(values)}."] if values else []


def names_of(label: str, design: Design) -> set[str]:
    """Return every name by which `models=` may call a design; a bracket-free one for the untrained."""
    return {label, design.model, label.replace(UNTRAINED, "-untrained")}


def _further(designs: list[Design]) -> dict[str, str]:
    """Return key -> word for the factors, pooler and attn apart, in which designs differ: lora.r -> r."""
    keys = list(dict.fromkeys(key for design in designs for key in design.factors if key not in NAMED))
    shown = [design for design in designs if design.trained] or designs
    varying = [key for key in keys if len({d.factors.get(key) for d in shown}) > 1]
    last = Counter(key.rpartition(".")[2] for key in varying)
    return {key: word if last[word := key.rpartition(".")[2]] == 1 else key for key in varying}


def config_order(designs: dict[str, Design], order: dict[str, list[str]]) -> list[str]:
    """Return the labels: by (pooler, attn) as `order` lists them, then those of no known pooler in file order.

    Further factors follow by value, numbers as numbers. A pooler or attention that `order` does not list follows
    those it does, by name.
    """

    def place(label: str) -> tuple[Any, ...]:
        design = designs[label]
        cell = tuple(getattr(design, name) or design.factors.get(name, "") for name in ("pooler", "attn"))
        if not cell[0]:
            return (True,)
        names = zip(cell, (order.get("pooler", []), order.get("attn", [])), strict=True)
        ranks = [(known.index(name), "") if name in known else (len(known), name) for name, known in names]
        return (False, ranks, *map(_natural, design.factors.values()))

    return sorted(designs, key=place)


def _natural(value: str) -> tuple[float, str]:
    """Sort numbers by size, then texts by letter."""
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), value
