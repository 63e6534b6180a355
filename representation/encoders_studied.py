"""The encoders studied, trained or not, and which of them are the same decoder.

Heads do not reach into layers, so untrained starts that differ in the head alone are one decoder.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cli.errors import UserError
from cli.quiet import quiet
from encoders.text_encoder import TextEncoder
from evaluation.candidates import Candidate, candidates
from evaluation.instructions import Instructions, read_instructions
from records.fingerprint import of_value
from records.identity import below, of_states

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
        facts: list[dict[str, Any]] = self.candidate.manifest.get("lineage") or []
        return facts

    def encoder(self) -> TextEncoder:
        """Return the encoder, loaded when first asked for; the one loaded before it is let go.

        Raises `UserError` for weights that are not there or of another version.
        """
        key = of_value([str(self.candidate.folder), self.config])
        if key not in _loaded:
            _loaded.clear()
            with quiet():
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


def over_seeds(encoders: Sequence[Studied]) -> list[str]:
    """Return a note on designs of several seeds, of which the mean is shown; none where there is no such design."""
    several = {name: [s.seed for s in seeds] for name, seeds in by_design(encoders).items() if len(seeds) > 1}
    if not several:
        return []
    listed = "; ".join(f"{name} {', '.join(map(str, seeds))}" for name, seeds in several.items())
    return [f"Tables and figures hold the mean over seeds ({listed}), the csv files each seed."]


def backbone_key(studied: Studied, with_attention: bool = True) -> str:
    """Return a digest of all that the states of the encoder's start depend on: two starts with one digest are one."""
    settings = of_states(studied.config)
    kept = {key: value for key, value in settings.items() if with_attention or not below(key, ("attn",))}
    return of_value([kept, [stage["adapter_sha256"] for stage in studied.stages]])


def start_of(run: Studied, encoders: Sequence[Studied]) -> Studied | None:
    """Return the untrained one of `encoders` whose backbone `run` began from, None where it is not among them."""
    key = backbone_key(run)
    return next((s for s in encoders if not s.trained and backbone_key(s) == key), None)


def distinct_backbones(encoders: Sequence[Studied], with_attention: bool = True) -> list[Studied]:
    """Return the encoders whose states of tokens differ: every run, and of untrained starts the first per backbone.

    A start is then called "untrained", or by its earlier stages, "mntp + simcse", since pooler, head and seed do not
    reach its backbone. Another template than the usual one is named ("untrained, echo"). with_attention: causal and bi
    tell two starts apart ("untrained, bi"). Starts that still share name and seed are numbered.
    """
    distinct: dict[str, Studied] = {}
    for studied in encoders:
        if studied.trained:
            distinct[studied.label] = studied
        else:
            name = _start_name(studied, with_attention)
            distinct.setdefault(backbone_key(studied, with_attention), replace(studied, label=name, design=name))
    keys = [(studied.design, studied.seed) for studied in distinct.values()]
    numbered = []
    for i, (studied, key) in enumerate(zip(distinct.values(), keys, strict=True)):
        name = f"{studied.design} ({keys[: i + 1].count(key)})"
        alone = studied.trained or keys.count(key) == 1
        numbered.append(studied if alone else replace(studied, label=name, design=name))
    return numbered


def _start_name(studied: Studied, with_attention: bool) -> str:
    name = " + ".join(stage["objective"] for stage in studied.stages) or "untrained"
    template = of_states(studied.config)["template.name"]
    name += "" if template == "instruct" else f", {template}"
    return f"{name}, {studied.config['attn']['name']}" if with_attention else name


@dataclass(frozen=True)
class Decoder:
    """`label`: `multilayer-bi` for the runs of a design, `untrained, bi` for a start. `seeds`: one encoder per seed.

    `start`: label of the untrained decoder that the runs began from, "" where it is not among those looked at.
    """

    label: str
    seeds: tuple[Studied, ...]
    start: str = ""

    @property
    def trained(self) -> bool:
        """Return whether these are runs."""
        return self.seeds[0].trained


def decoders(encoders: Sequence[Studied]) -> list[Decoder]:
    """Return the distinct decoders: each start, followed by the designs of runs that began from it; then other runs."""
    distinct = distinct_backbones(encoders)
    starts = [studied for studied in distinct if not studied.trained]
    labels = [start.label for start in starts]
    unique = {  # starts of one name have unlike seeds
        backbone_key(start): start.label if labels.count(start.label) == 1 else f"{start.label} seed={start.seed}"
        for start in starts
    }
    runs: dict[str, list[Studied]] = {}
    for run in (studied for studied in distinct if studied.trained):
        runs.setdefault(unique.get(backbone_key(run), ""), []).append(run)
    ordered: list[Decoder] = []
    for label, start in [*zip(unique.values(), starts, strict=True), ("", None)]:
        ordered += [Decoder(label, (start,))] if start else []
        ordered += [Decoder(design, tuple(seeds), label) for design, seeds in by_design(runs.get(label, [])).items()]
    return ordered
