"""Whose representations are looked at: finished runs and their untrained starts, one loaded at a time."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.candidates import Candidate, candidates
from evaluation.instructions import Instructions, read_instructions
from records.errors import UserError
from records.fingerprint import of_value

if TYPE_CHECKING:
    from encoders.text_encoder import TextEncoder

Config = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """One encoder, trained or not. `label` is unlike that of every other subject of the command.

    `design`: the label without the seed, the same for all seeds of a design.
    """

    candidate: Candidate
    label: str
    design: str = ""

    @property
    def config(self) -> Config:
        """The run's configuration, as its manifest holds it."""
        config: Config = self.candidate.manifest["config"]
        return config

    @property
    def trained(self) -> bool:
        """Whether it is a run, and not a start."""
        return self.candidate.trained

    @property
    def seed(self) -> int:
        """Of the run, or of the start's random parts."""
        return int(self.candidate.manifest["seed"])

    @property
    def instructions(self) -> Instructions:
        """What evaluation puts before texts."""
        return read_instructions(self.config["evaluation"]["instructions"])

    def encoder(self) -> "TextEncoder":
        """Return the encoder, loaded when first asked for; the one before it is let go.

        Raises `UserError` for weights that are not there or of another version.
        """
        from evaluation.quiet import quiet

        key = of_value([str(self.candidate.folder), self.candidate.manifest["config"]])
        if key not in _held:
            _held.clear()
            with quiet():
                _held[key] = self.candidate.load()
        return _held[key]


_held: dict[str, Any] = {}  # the encoder that is being looked at


def subjects(cfg: Config) -> list[Subject]:
    """Return those that `run` and `untrained` ask for, starts first, in path order; for run=null the untrained encoder.

    cfg: the keys of conf/evaluate.yaml that say what is scored. Raises `UserError` where nothing matches.
    """
    whole: dict[str, Candidate] = {}
    for candidate in candidates(cfg):
        held = replace(candidate, dim=None, siblings=None)
        whole.setdefault(f"{held.results} {held.title}", held)
    if not whole:
        raise UserError("There is nothing to look at. Give run=<run folder or glob>.")
    found = list(whole.values())
    seeds = len({c.manifest["seed"] for c in found}) > 1
    return [Subject(c, _with_seed(c, name, seeds), name) for c, name in zip(found, _designs(found), strict=True)]


def _designs(found: list[Candidate]) -> list[str]:
    """`multilayer-bi untrained`, with the study, then the folder before it only where they tell two apart."""
    short = [_design(c) for c in found]
    study = [f"{c.manifest['study']}/{name}" for c, name in zip(found, short, strict=True)]
    place = [f"{Path(c.results).absolute().parent}: {name}" for c, name in zip(found, study, strict=True)]
    for names in (short, study):
        told = [_with_seed(c, name, True) for c, name in zip(found, names, strict=True)]
        if len(set(told)) == len(told):
            return names
    return place


def _design(candidate: Candidate) -> str:
    m = candidate.manifest
    return f"{m['pooler']}-{m['attn']}{'' if candidate.trained else ' untrained'}"


def _with_seed(candidate: Candidate, name: str, seeds: bool) -> str:
    return f"{name} seed={candidate.manifest['seed']}" if seeds else name
