"""Which encoders are the same decoder: heads do not reach into layers, so starts that differ in the head are one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.errors import UserError
from evaluation.candidates.candidates import Candidate, candidates
from evaluation.instructions import Instructions, read_instructions
from records.fingerprint import of_value
from records.identity import MEANT, below, of_states

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
        from cli.quiet import quiet

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


def distinct_backbones(subjects: Sequence["Subject"], with_attention: bool) -> list["Subject"]:
    """Return the subjects whose states of tokens differ: every run, and of untrained starts the first of each backbone.

    A start is then called "untrained", or by its earlier stages, "mntp + simcse", since pooler, head and seed do not
    reach its backbone; another template than the usual one is named ("untrained, echo"). with_attention: whether causal
    and bi tell two starts apart ("untrained, bi").
    """
    found: dict[str, Subject] = {}
    for subject in subjects:
        key = subject.label if subject.trained else backbone_key(subject, with_attention)
        if key not in found:
            name = _name(subject, with_attention)
            found[key] = subject if subject.trained else replace(subject, label=name, design=name)
    return _told_apart(list(found.values()))


def by_design(subjects: Sequence["Subject"]) -> dict[str, list["Subject"]]:
    """Return design -> its subjects, one a seed, in the order of the first of each."""
    found: dict[str, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(subject.design or subject.label, []).append(subject)
    return found


def over_seeds(subjects: Sequence["Subject"]) -> list[str]:
    """A note on designs of several seeds, none where there is none: what is shown of them is the mean."""
    several = {name: [s.seed for s in own] for name, own in by_design(subjects).items() if len(own) > 1}
    if not several:
        return []
    said = "; ".join(f"{name} {', '.join(map(str, seeds))}" for name, seeds in several.items())
    return [f"Tables and figures hold the mean over seeds ({said}), the csv files each seed."]


def start_of(run: "Subject", subjects: Sequence["Subject"], with_attention: bool) -> "Subject | None":
    """The untrained one of `subjects` whose backbone `run` began from, where it is among them."""
    key = backbone_key(run, with_attention)
    return next((s for s in subjects if not s.trained and backbone_key(s, with_attention) == key), None)


def stages_of(subject: "Subject") -> list[dict[str, Any]]:
    """Facts of the stages that the subject's backbone has behind it: run, objective, adapter_sha256."""
    facts: list[dict[str, Any]] = subject.candidate.manifest.get("lineage") or []
    return facts


def backbone_key(subject: "Subject", with_attention: bool = True) -> str:
    """Return a digest of all that the states of the subject's start depend on: two starts with one digest are one."""
    settings = of_states(subject.config)
    kept = {key: value for key, value in settings.items() if with_attention or not below(key, ("attn",))}
    return of_value([kept, [stage["adapter_sha256"] for stage in stages_of(subject)]])


def _name(subject: "Subject", with_attention: bool) -> str:
    name = " + ".join(stage["objective"] for stage in stages_of(subject)) or "untrained"
    template = of_states(subject.config)["template.name"]
    name += "" if template == MEANT["template.name"] else f", {template}"
    return f"{name}, {subject.config['attn']['name']}" if with_attention else name


def _told_apart(subjects: list["Subject"]) -> list["Subject"]:
    """Number starts that share name and seed, such as those after two kinds of mntp; seeds are one design's."""
    keys = [(subject.design, subject.seed) for subject in subjects]
    return [
        subject if subject.trained or keys.count(key) == 1 else replace(subject, label=name, design=name)
        for i, (subject, key) in enumerate(zip(subjects, keys, strict=True))
        for name in [f"{subject.design} ({keys[: i + 1].count(key)})"]
    ]


@dataclass(frozen=True)
class Decoder:
    """`label`: `multilayer-bi` for the runs of a design, `untrained, bi` for a start. `seeds`: one a seed.

    `start`: label of the untrained decoder that a run began from, where it is among those that are looked at.
    """

    label: str
    seeds: tuple[Subject, ...]
    start: str = ""

    @property
    def trained(self) -> bool:
        """Whether these are runs."""
        return self.seeds[0].trained


def decoders(subjects: Sequence[Subject]) -> list[Decoder]:
    """Return the different decoders: each start, then the runs that began from it."""
    starts: dict[str, Subject] = {}
    for subject in subjects:
        if not subject.trained:
            starts.setdefault(backbone_key(subject), subject)
    called = [f"untrained, {subject.config['attn']['name']}" for subject in starts.values()]
    unlike = len(set(called)) == len(called)
    found: list[Decoder] = []
    runs = [subject for subject in subjects if subject.trained]
    for (key, subject), name in zip(starts.items(), called, strict=True):
        label = name if unlike else subject.label
        found += [
            Decoder(label, (subject,)),
            *_designs_of_decoders([run for run in runs if backbone_key(run) == key], label),
        ]
    return found + _designs_of_decoders([run for run in runs if backbone_key(run) not in starts], "")


def _designs_of_decoders(runs: list[Subject], start: str) -> list[Decoder]:
    by_design: dict[str, list[Subject]] = {}
    for run in runs:
        by_design.setdefault(run.design, []).append(run)
    return [Decoder(design, tuple(seeds), start) for design, seeds in by_design.items()]
