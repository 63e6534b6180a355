"""The same designs and seeds on several machines: what all have, and that they differ in nothing but the machine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.control.rule import MACHINE, controlled, judge
from analysis.manifests.compared_keys import check_allowed
from analysis.manifests.designs import Design
from analysis.names import listed
from analysis.scores.read import scores_of_each
from analysis.settings import Settings
from cli.errors import UserError
from records.identity import below

HERE = Path("these scores")  # the name of several folders of `scores=` that are one machine's


@dataclass(frozen=True)
class Machines:
    """What all machines have, and nothing else of them."""

    frames: dict[str, pd.DataFrame]  # machine -> long table of design, seed, task, score
    designs: dict[str, dict[str, Design]]  # machine -> label -> design, the labels in one order
    notes: list[str]  # on what was left out, the machines, and what else differs

    @property
    def names(self) -> list[str]:
        """The machines, those of `scores=` first."""
        return list(self.frames)

    @property
    def labels(self) -> list[str]:
        """The designs that every machine has."""
        return list(next(iter(self.designs.values())))

    @property
    def tasks(self) -> list[str]:
        """The tasks that every machine has scores of."""
        return list(next(iter(self.frames.values()))["task"].unique())


def beside(frame: pd.DataFrame, designs: dict[str, Design], settings: Settings) -> Machines | None:
    """Return the scores at hand and those of the machines that `machines=` names; None where it names none.

    frame: the long table of the `designs`, which bound what is read of the others. Raises as `held_alike`.
    """
    if not settings.machines:
        return None
    (here, _), *others = named((settings.scores[0] if len(settings.scores) == 1 else HERE, *settings.machines)).items()
    read, notes, runs = {here: (frame, designs)}, list[str](), frame.set_index(["design", "seed"]).index
    names = {design.own_name or label: label for label, design in designs.items()}
    for name, path in others:
        alone = replace(settings, scores=(path,), models=(), seeds=(), rename={})
        other, its_designs, _, its_notes = scores_of_each(alone, names)
        other = other.assign(design=other["design"].map(names))
        kept = other.set_index(["design", "seed"]).index.isin(runs) & other["task"].isin(frame["task"])
        read[name] = other[kept], {names[label]: design for label, design in its_designs.items()}
        notes += its_notes
    alike = held_alike(read, settings)
    return replace(alike, notes=[*alike.notes, *notes])


def held_alike(read: Mapping[str, tuple[pd.DataFrame, dict[str, Design]]], settings: Settings) -> Machines:
    """Return what all machines have, after the control rule. read: machine -> its long table, its designs by label.

    Raises UserError where the machines share no run or fewer than two tasks, where they differ in more than the
    machine and the factors, or where one name stands for two designs.
    """
    frames, notes = shared({name: frame for name, (frame, _) in read.items()})
    every = {name: of_runs(read[name][1], frame) for name, frame in frames.items()}
    labels = list(next(iter(every.values())))
    designs = {name: {label: some[label] for label in labels} for name, some in every.items()}  # pairs one way round
    alike = Machines(frames, designs, [])
    runs = (run for _, of_name in read.values() for design in of_name.values() for run in design.runs)
    check_allowed(settings.allow, (run.manifest for run in runs))
    rule = controlled(by_machine(designs), alike.tasks, settings, MACHINE)
    refuse_other_designs(designs, settings)
    notes += [*machine_notes(designs), *rule.notes, *(f"{note.mark}: {note.text}" for note in rule.footnotes)]
    return replace(alike, notes=notes)


def named(folders: tuple[Path, ...]) -> dict[str, Path]:
    """Return name -> folder; a name is the last part of the paths in which all differ, or else the whole path.

    Raises UserError for fewer than two folders, or one that is named twice.
    """
    if len({folder.resolve() for folder in folders}) < max(2, len(folders)):
        raise UserError("Name two folders of scores or more, each once, one per machine: scores=[a,b] or machines=[b].")
    depths = range(1, 1 + min(len(folder.parts) for folder in folders))
    parts = ([folder.parts[-depth] for folder in folders] for depth in depths)
    names = next((names for names in parts if len(set(names)) == len(folders)), list(map(str, folders)))
    return dict(zip(names, folders, strict=True))


def shared(frames: Mapping[str, pd.DataFrame]) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return the scores of each machine that all have, and a note on the others.

    frames: machine -> long table of design, seed, task, score, without holes. Raises UserError where the machines have
    no run in common, or fewer than two tasks.
    """
    kept, gone = dict(frames), list[str]()
    for what, columns, fewest in (("run", ["design", "seed"], 1), ("task", ["task"], 2)):
        units = {name: list(frame[columns].itertuples(index=False, name=None)) for name, frame in kept.items()}
        every = dict.fromkeys(unit for of_one in units.values() for unit in of_one)
        common = set(every).intersection(*units.values())
        if len(common) < fewest:
            raise UserError(
                f"{listed(frames)} share {len(common) or 'no'} {what}, too few to compare. Train the same designs with"
                " the same seeds on each machine, and score them on the same tasks."
            )
        kept = {name: frame[[unit in common for unit in units[name]]] for name, frame in kept.items()}
        gone += [f"{what} {' seed '.join(filter(None, unit))}" for unit in every if unit not in common]
    return kept, [f"Not on every machine, so left out: {listed(gone, 12)}."] if gone else []


def of_runs(designs: Mapping[str, Design], frame: pd.DataFrame) -> dict[str, Design]:
    """Return the designs of a machine with the runs alone that `frame` has scores of."""
    seeds = {label: set(some) for label, some in frame.groupby("design")["seed"]}
    return {
        label: replace(design, runs=tuple(run for run in design.runs if run.seed in seeds[label]))
        for label, design in designs.items()
        if label in seeds
    }


def by_machine(designs: Mapping[str, Mapping[str, Design]]) -> dict[str, Design]:
    """Return the cells that the control rule compares: label and machine -> design, the machine one of its factors."""
    return {
        f"{label} on {name}": replace(design, factors={**design.factors, MACHINE: name})
        for name, of_name in designs.items()
        for label, design in of_name.items()
    }


def refuse_other_designs(designs: Mapping[str, Mapping[str, Design]], settings: Settings) -> None:
    """Refuse a label that stands for another design on another machine. Raises `UserError`.

    A name says in what the designs of one folder differ, so a factor that each folder has once is in no name.
    """
    for label in next(iter(designs.values())):
        alone = by_machine({name: {label: of_name[label]} for name, of_name in designs.items()})
        keys = [key for key in judge(alone, (MACHINE,)).refused if below(key, settings.factors)]
        if keys:
            raise UserError(
                f"{label} is not the same design on all machines, for not the same {listed(keys, 4)}. Give folders that"
                " hold the same designs."
            )


def machine_notes(designs: Mapping[str, Mapping[str, Design]]) -> list[str]:
    """Return what manifests say of each machine, and which are of one kind. designs: machine -> label -> design."""
    texts = {}
    for name, of_name in designs.items():
        descriptions = dict.fromkeys(_machine(run.manifest) for design in of_name.values() for run in design.runs)
        texts[name] = "; or ".join(filter(None, descriptions))
    alike = [(one, other) for one, other in combinations(texts, 2) if texts[one] and texts[one] == texts[other]]
    kinds = [f"By their manifests {one} and {other} are machines of one kind." for one, other in alike]
    return [*(f"{name}: {text}." for name, text in texts.items() if text), *kinds]


def _machine(manifest: Mapping[str, Any]) -> str:
    """Return the processor and its instruction sets in words; "" for a manifest that has no machine."""
    machine = manifest.get("machine")
    if not isinstance(machine, dict):
        return ""
    text, sets = f"{machine.get('processor')}, {machine.get('cores')} cores", machine.get("instruction_sets")
    if not isinstance(sets, dict):
        return f"{text}, instruction sets {sets or 'not written down'}"
    limit = f"oneDNN up to {sets['onednn']}" if sets["onednn"] else "oneDNN without a limit"
    compiled = f"passes compiled for {sets['numba']}" if sets["numba"] else "no compiled passes"
    return f"{text}, torch {sets['torch']}, {limit}, {compiled}"
