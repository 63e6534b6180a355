"""The encoders studied, trained or not, and which of them are the same decoder.

Heads do not reach into layers, so untrained starts that differ in the head alone are one decoder.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cli.errors import UserError
from encoders.templates import DEFAULT
from encoders.text_encoder import TextEncoder
from evaluation.candidates import Candidate, candidates
from evaluation.instructions import Instructions, read_instructions
from records.files import of_value
from records.manifest import below, of_states

Config = dict[str, Any]
_loaded: dict[str, Any] = {}  # the one encoder in memory, by a digest of what it was loaded from


@dataclass(frozen=True)
class Studied:
    """One encoder. `label` is unique among the encoders of the command; `design` is the label without the seed."""

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
        """Return whether it is a run, and not a start."""
        return self.candidate.trained

    @property
    def seed(self) -> int:
        """The seed of the run, or of the start's random parts."""
        return int(self.candidate.manifest["seed"])

    @property
    def instructions(self) -> Instructions:
        """The instructions that evaluation puts before texts."""
        return read_instructions(self.config["evaluation"]["instructions"])

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Facts of the stages that the backbone has behind it: run, objective, adapter_sha256."""
        facts: list[dict[str, Any]] = self.candidate.manifest.get("merged") or []
        return facts

    def encoder(self) -> TextEncoder:
        """Return the encoder, loaded when first asked for; the one loaded before it is let go.

        Raises `UserError` for weights that are not there or of another version.
        """
        key = of_value([str(self.candidate.folder), self.config])
        if key not in _loaded:
            _loaded.clear()
            _loaded[key] = self.candidate.load()
        encoder: TextEncoder = _loaded[key]
        return encoder


def read_encoders(cfg: Config) -> list[Studied]:
    """Return those that `run` and `untrained` ask for, starts first, in path order; for run=null the untrained encoder.

    cfg: the keys of conf/evaluate.yaml that say what is scored. Raises `UserError` where nothing matches.
    """
    whole: dict[str, Candidate] = {}
    for candidate in (replace(c, dim=None, siblings=None) for c in candidates(cfg)):
        whole.setdefault(f"{candidate.results} {candidate.title}", candidate)
    if not whole:
        raise UserError("There is nothing to look at. Give run=<run folder or glob>.")
    distinct = list(whole.values())
    several = len({c.manifest["seed"] for c in distinct}) > 1
    return [
        Studied(c, f"{name} seed={c.manifest['seed']}" if several else name, name)
        for c, name in zip(distinct, _designs(distinct), strict=True)
    ]


def _designs(distinct: list[Candidate]) -> list[str]:
    """Name designs `multilayer-bi untrained`, with the study, then its folder, only where these tell two apart."""
    short = [f"{c.manifest['pooler']}-{c.manifest['attn']}{'' if c.trained else ' untrained'}" for c in distinct]
    study = [f"{c.manifest['study']}/{name}" for c, name in zip(distinct, short, strict=True)]
    for names in (short, study):
        if len({(name, c.manifest["seed"]) for c, name in zip(distinct, names, strict=True)}) == len(distinct):
            return names
    return [f"{Path(c.results).absolute().parent}: {name}" for c, name in zip(distinct, study, strict=True)]


def by_design(encoders: Sequence[Studied]) -> dict[str, list[Studied]]:
    """Return design -> its encoders, one per seed, in the order of the first of each."""
    designs: dict[str, list[Studied]] = {}
    for studied in encoders:
        designs.setdefault(studied.design or studied.label, []).append(studied)
    return designs


def backbone_key(studied: Studied, with_attention: bool = True) -> str:
    """Return a digest of all that the states of the encoder's start depend on: two starts with one digest are one."""
    settings = of_states(studied.config)
    kept = {key: value for key, value in settings.items() if with_attention or not below(key, ("attn",))}
    manifest, how = studied.candidate.manifest, []
    if manifest.get("start") or manifest.get("experts"):
        how = [manifest.get("start"), manifest.get("experts"), studied.config["lora"], studied.seed]
    return of_value([kept, [stage["adapter_sha256"] for stage in studied.stages], how])


def distinct_backbones(encoders: Sequence[Studied], with_attention: bool = True) -> list[Studied]:
    """Return the encoders whose states of tokens differ: every run, and of untrained starts the first per backbone.

    A start is then called "untrained", or by its earlier stages, "mntp + simcse", since pooler, head and seed do not
    reach its backbone. Another template than the usual one is named ("untrained, echo"). with_attention: causal and bi
    tell two starts apart ("untrained, bi"). Starts that share name and seed are numbered.
    """
    runs = [studied for studied in encoders if studied.trained]
    starts: dict[str, Studied] = {}
    for studied in (studied for studied in encoders if not studied.trained):
        starts.setdefault(backbone_key(studied, with_attention), studied)
    named: list[Studied] = []
    for studied in starts.values():
        name = _start_name(studied, with_attention)
        seeds = [other.seed for other in named if other.design == name]
        name += f" ({1 + seeds.count(studied.seed)})" * (studied.seed in seeds)
        named.append(replace(studied, label=f"{name} seed={studied.seed}" if seeds else name, design=name))
    return named + runs


def _start_name(studied: Studied, with_attention: bool) -> str:
    name = " + ".join(stage["objective"] for stage in studied.stages) or "untrained"
    template = studied.config["template"]["name"]
    name += "" if template == DEFAULT.name else f", {template}"
    return f"{name}, {studied.config['attn']['name']}" if with_attention else name


def after_their_starts(distinct: Sequence[Studied]) -> list[tuple[Studied, str]]:
    """Return (encoder, label of its start) of `distinct_backbones`: each start ("" as its own), then its runs.

    Runs whose start is not among them come last, with "".
    """
    starts = {backbone_key(studied): studied.label for studied in distinct if not studied.trained}
    order = [*starts.values(), ""]
    of_start = [(s, starts.get(backbone_key(s), "") if s.trained else "") for s in distinct]
    return sorted(of_start, key=lambda pair: order.index(pair[1] if pair[0].trained else pair[0].label))
