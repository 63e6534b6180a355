"""One checkpoint read by several poolers, each a candidate: those of `variants=`, and the common start of runs."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from cli.compose import CONF
from cli.errors import UserError
from evaluation.candidates import Candidate, Config, pooler_word
from evaluation.embeddings import Embeddings, shared
from records.files import of_value
from records.manifest import BASE, of_states

PLAIN = ("eos", "mean", "weightedmean", "cls")  # poolers without parameters
LAYER = re.compile(rf"layer:(\d+|\*)/({'|'.join(PLAIN)})")
MOEE = re.compile(
    r"moee:(?:(?P<both>hidden|concat|sum)(?:(?<=sum)@(?P<alpha>\d+(?:\.\d+)?))?"
    r"(?:/(?P<tokens>last|mean)(?:/(?P<layers>last|all|mean))?)?"
    r"|routing(?:/(?P<routed>last|mean))?)"
)


class Together:
    """The variants of one checkpoint as one encoder: their vectors stand side by side in a row of [E].

    columns: variant -> its part of a row. fingerprints: of the encoders that have one of the poolers alone.
    """

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded
        poolers = dict(sorted(loaded.variants.poolers.items()))
        ends = list(itertools.accumulate(pooler.embedding_dim for pooler in poolers.values()))
        starts = [0, *ends[:-1]]
        self.columns = {name: slice(*span) for name, *span in zip(poolers, starts, ends, strict=True)}
        self.fingerprints = loaded.fingerprints
        self.fingerprint = of_value([loaded.fingerprints[name] for name in poolers])
        self.embedding_dim = ends[-1]
        self.settings, self.max_length = loaded.text_encoder.settings, loaded.text_encoder.max_length
        self.meter = loaded.text_encoder.meter

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield (indices of `texts`, their [n, E] float32)."""
        for indices, vectors in self.loaded.parts(texts, instruction):
            yield indices, np.concatenate([vectors[name] for name in self.columns], axis=1)


@dataclass(frozen=True, kw_only=True)
class VariantCandidate(Candidate):
    """A candidate whose vectors come from forward passes that all variants of `of` share. `poolers`: those of all.

    heads: of variants that are runs of their own: the seed that draws the head, the folder that holds a trained one.
    """

    variant: str
    of: Candidate
    poolers: dict[str, Config]
    heads: dict[str, tuple[int, Path | None]] = field(default_factory=dict)

    @property
    def checkpoint(self) -> str:
        """See `Candidate`."""
        return self.of.checkpoint

    def embeddings(self, cache_dir: Path | None) -> Embeddings:
        """Return this variant's vectors; the checkpoint is loaded with the first of its variants."""
        config = self.of.manifest["config"]

        def load() -> Together:
            from encoders.variants import load_variants

            return Together(load_variants(config, self.of.folder or self.of.start, self.poolers, self.heads))

        what = [str(self.of.folder or self.of.start), config, self.poolers, sorted(self.heads)]
        whole = shared(what, load, cache_dir)
        of: Any = whole.encoder
        return replace(whole, fingerprint=of.fingerprints[self.variant], columns=of.columns[self.variant])


def check_variants(names: Any) -> list[str]:
    """Return `names` as a list without repeats. Raises `UserError`, naming the choices, for one that there is not."""
    listed = [names] if isinstance(names, str) else list(names or [])
    for name in listed:
        if name not in PLAIN and not LAYER.fullmatch(str(name)) and not MOEE.fullmatch(str(name)):
            choices = f"{', '.join(PLAIN)}, layer:<number or *>/<one of these>, moee:... (docs/moee.md)"
            raise UserError(f"There is no variant '{name}'. Choices: {choices}.")
    return list(dict.fromkeys(listed))


def read_by(candidates: Sequence[Candidate], names: Sequence[str]) -> list[Candidate]:
    """Return a candidate for each of `candidates` and each variant; what is the same encoder twice is there once.
    Raises `UserError` where candidates are prefixes already (evaluation.dims)."""
    if any(candidate.dim for candidate in candidates):
        raise UserError("variants and evaluation.dims do not go together. Leave one of them out.")
    variants: dict[str, Candidate] = {}
    for candidate in candidates:
        config = candidate.manifest["config"]
        poolers = {name: pooler_config(name, config) for name in _each(names, config)}
        for name in poolers:
            variant = _variant(candidate, name, poolers)
            variants.setdefault(f"{variant.results} {variant.title} {candidate.folder}", variant)
    return list(variants.values())


def share_states(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Let candidates whose states are the same share their forward passes, each with its own head.

    The order stays, and so do vectors and fingerprints: designs and seeds of one attention differ in heads alone
    before training, and after it where the backbone was frozen.
    """
    starts: dict[str, dict[str, Candidate]] = {}
    for candidate in candidates:
        config = candidate.manifest["config"]
        given = {"start", "experts"} & candidate.manifest.keys()  # by other runs
        adapted = candidate.trained and not config["backbone"]["frozen"]
        alone = adapted or given or candidate.dim or isinstance(candidate, VariantCandidate)
        if not alone and config["pooler"].get("standardise") != "corpus":  # which needs a file of statistics
            base = f"{_states(config)} {[candidate.manifest.get(key) for key in BASE]}"
            starts.setdefault(base, {}).setdefault(f"{candidate.title} {candidate.folder}", candidate)
    shared: dict[int, Candidate] = {}
    for members in starts.values():
        first = next(iter(members.values()))
        poolers = {title: member.manifest["config"]["pooler"] for title, member in members.items()}
        heads = {title: (member.manifest["config"]["seed"], member.folder) for title, member in members.items()}
        for title, member in members.items() if len(members) > 1 else ():
            shared[id(member)] = VariantCandidate(
                member.manifest, member.results, member.folder, variant=title, of=first, poolers=poolers, heads=heads
            )
    return [shared.get(id(candidate), candidate) for candidate in candidates]


def _states(config: Config) -> str:
    """Digest of all that the states of a base without adapter depend on; padding takes another kernel."""
    from poolers.shared.registry import reads_padding

    how = [config.get(key) for key in ("init", "normalize", "padding_side", "token_budget", "accelerator", "compile")]
    return of_value([of_states(config), how, reads_padding(config["pooler"])])


def _variant(of: Candidate, name: str, poolers: dict[str, Config]) -> VariantCandidate:
    """Its manifest is that of the checkpoint, but for the pooler: a factor, so that variants compare with one another.

    A trained run's own pooler is the run itself. Another variant of it is named after both: it was not trained so.
    """
    manifest, config = of.manifest, of.manifest["config"]
    word = pooler_word(poolers[name])
    if not of.trained:
        manifest = {**manifest, "pooler": word, "config": {**config, "pooler": poolers[name]}}
    elif poolers[name] != config["pooler"]:
        manifest = {
            **manifest,
            "pooler": f"{word}_of_{manifest['pooler']}",
            "config": {**config, "pooler": poolers[name]},
            "trained_with": config["pooler"],
            "parameters": {**manifest.get("parameters", {}), "head": 0},
        }
    return VariantCandidate(manifest, of.results, of.folder, variant=name, of=of, poolers=poolers)


def _each(names: Sequence[str], config: Config) -> list[str]:
    """The names with layer:*/... written out."""
    if not any("*" in name for name in names):
        return list(dict.fromkeys(names))
    from encoders.backbone import load_config

    layers = range(int(load_config(config["model"]).num_hidden_layers))
    each = [[name.replace("*", str(i)) for i in layers] if "*" in name else [name] for name in names]
    return list(dict.fromkeys(itertools.chain.from_iterable(each)))


def pooler_config(name: str, config: Config) -> Config:
    """Return the configuration of a variant's pooler, as pooler=<name> would compose it within `config`."""
    match = LAYER.fullmatch(name)
    kind = "layer" if match else "moee" if MOEE.fullmatch(name) else name
    file = CONF / "pooler" / f"{kind}.yaml"
    whole = OmegaConf.create({**config, "pooler": OmegaConf.load(file)})
    pooler: Config = OmegaConf.to_container(whole.pooler, resolve=True)  # type: ignore[assignment]
    if kind == "moee":
        return _moee_pooler(name, pooler)
    return {**pooler, "layer": int(match[1]), "pooling": match[2]} if match else pooler


def _moee_pooler(name: str, usual: Config) -> Config:
    """Return the configuration `usual` of pooler=moee with what `name` asks for: what it leaves out is "last"."""
    match = MOEE.fullmatch(name)
    assert match is not None, name
    tokens = match["tokens"] or match["routed"] or "last"
    return {
        **usual,
        "variant": match["both"] or "routing",
        "alpha": float(match["alpha"] or 1.0),
        "hidden_tokens": tokens,
        "routing_tokens": tokens,
        "hidden_layers": match["layers"] or "last",
    }
