"""The encoders to score: finished runs, their untrained starts, or an untrained reference without any run."""

import glob
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cli.compose import composed, plain
from cli.errors import UserError
from cli.limits import check_dims
from evaluation.embeddings import Embeddings, Encoder, let_go, shared
from evaluation.words import evaluate_words
from records.earlier_runs import read_stages
from records.files import of_value
from records.manifest import check_code, read_manifest
from records.run_folder import START, model_name, untrained_study, whole_study

Config = dict[str, Any]
IN_WORD = {  # pooler -> its keys that `pooler_word` says
    "layer": ("layer", "pooling"),
    "moee": ("variant", "alpha", "hidden_tokens", "hidden_layers", "routing_tokens"),
}
OF_A_START = (  # what a run's manifest says before the first step, whatever its objective adds afterwards
    *("manifest_version", "study", "pooler", "attn", "seed", "config", "data"),
    *("base_weights_sha256", "tokenizer_sha256", "base_config_sha256", "merged", "experts", "start"),
    *("precision", "dtypes", "device", "kernel", "elementwise", "parameters", "seeds", "threads"),
    *("versions", "machine", "code"),
)


@dataclass(frozen=True)
class Candidate:
    """One encoder to score. It is loaded only when its turn comes."""

    manifest: Config  # the run's own; for an untrained one what stands in for it, status "untrained"
    results: Path  # folder that gets results/ and tasks.json
    folder: Path | None = None  # the run folder; None for an untrained one
    dim: int | None = None  # how many entries of a vector are scored; None: all
    siblings: tuple[int, ...] | None = None  # all dimensions that are scored of the same encoder, rising
    start: Path | None = None  # of an untrained one of a run: where the run keeps what other runs give it, if any do

    @property
    def trained(self) -> bool:
        """Return whether it is the result of a run."""
        return self.folder is not None

    @property
    def name(self) -> str:
        """The model name in mteb's form, "study/design": `study/pooler-attn`, with `-untrained` where it is so."""
        m = self.manifest
        marks = f"-{self.dim}d" * bool(self.dim) + "-untrained" * (not self.trained)
        return model_name(str(m["study"]), f"{m['pooler']}-{m['attn']}{marks}")

    @property
    def title(self) -> str:
        """Name and seed, for people."""
        return f"{self.name} seed={self.manifest['seed']}"

    def load(self) -> Encoder:
        """Return the encoder. Raises `UserError` for weights that are not there or of another version."""
        from encoders import loading

        return loading.loaded(self.manifest["config"], self.folder or self.start)

    @property
    def checkpoint(self) -> str:
        """Candidates of one checkpoint share their forward passes."""
        return f"{self.results} {replace(self, dim=None).title}"

    def embeddings(self, cache_dir: Path | None) -> Embeddings:
        """Load the encoder and return its vectors, kept below `cache_dir`; those of a prefix share one encoder.

        Raises `UserError` as `load` does, and for more entries than a vector has.
        """
        if self.dim is None:
            let_go()
            return Embeddings.of(self.load(), cache_dir)
        whole = shared([self.folder, self.checkpoint], self.load, cache_dir)
        check_dims("evaluation.dims", list(self.siblings or ()), whole.embedding_dim)
        fingerprint = of_value([whole.fingerprint, "prefix", self.dim])
        return replace(whole, fingerprint=fingerprint, columns=slice(self.dim), unit=True)


def configured(words: Sequence[str]) -> Config:
    """Return conf/evaluate.yaml under these words, with those that count in place of what runs say."""
    return plain(composed("evaluate", evaluate_words(words)))


def candidates(cfg: Config, typed: Sequence[str] = ()) -> list[Candidate]:
    """Return what `run`, `untrained` and, for run=null, the groups model, pooler and attn ask for, in path order.

    Each of evaluation.dims is a candidate of its own, as its manifest says. typed: words that count before what runs
    say, as do values other than the default. Raises `UserError` for a pattern without match, or without finished run.
    """
    keys = {word.partition("=")[0] for word in typed}
    each = [_zero_shot(cfg)] if cfg["run"] is None else _of_runs(cfg, keys)
    return [dim for whole in each for dim in each_dim(whole)]


def each_dim(whole: Candidate) -> list[Candidate]:
    """Return the candidate itself, or one for each of its configuration's evaluation.dims."""
    config = whole.manifest["config"]
    dims = config.get("evaluation", {}).get("dims")
    if dims is None:
        return [whole]
    each = []
    for dim in dims:
        manifest = {**whole.manifest, "config": {**config, "evaluation": {**config["evaluation"], "dims": [dim]}}}
        each.append(replace(whole, manifest=manifest, dim=dim, siblings=tuple(dims)))
    return each


def _of_runs(cfg: Config, typed: set[str]) -> list[Candidate]:
    encoders, usual, own = [], plain(composed("evaluate")), cfg["evaluation"]
    changed = {k: v for k, v in own.items() if f"evaluation.{k}" in typed or v != usual["evaluation"][k]}
    changed |= {"instructions": cfg["instructions"]} if cfg.get("instructions") else {}
    given = "accelerator" in typed or cfg["accelerator"] != usual["accelerator"]
    device = {"accelerator": cfg["accelerator"]} if given else {}
    for folder, manifest in finished_runs(cfg["run"]):
        check_code(folder, manifest, cfg["model"]["trust_remote_code"])
        evaluation = {**manifest["config"].get("evaluation", {}), **changed}
        config = {**manifest["config"], **device, "evaluation": evaluation}
        results = Path(cfg["results"] or folder.absolute().parents[1] / "scores")
        if cfg["untrained"]:
            start = {key: value for key, value in manifest.items() if key in OF_A_START}
            encoders.append(Candidate(start | {"status": "untrained", "config": config}, results, start=folder / START))
        if cfg["untrained"] != "only":
            encoders.append(Candidate({**manifest, "config": config}, results, folder))
    return encoders


def _zero_shot(cfg: Config) -> Candidate:
    """An encoder that no run made; its study names what gives vectors of their own, as train.py does."""
    stages = read_stages(cfg["init"]["merge"])
    in_word = [f"pooler.{key}" for key in IN_WORD.get(cfg["pooler"]["name"], ())]
    study = untrained_study(cfg, ["evaluation.dims", "evaluation.instructions", *in_word])
    manifest = {"study": study, "pooler": pooler_word(cfg["pooler"]), "attn": cfg["attn"]["name"]}
    if stages:
        manifest["merged"] = [stage.facts for stage in stages]
    results = Path(cfg["results"] or Path(cfg["runs_dir"]) / cfg["study"] / "scores")
    return Candidate({**manifest, "seed": cfg["seed"], "status": "untrained", "config": cfg}, results)


def pooler_word(pooler: Config) -> str:
    """Return the name of an untrained pooler in folders and tables; each layer, pooling and variant has its own."""
    if pooler["name"] == "moee":
        return _moee_word(pooler)
    return f"layer{pooler['layer']}_{pooler['pooling']}" if pooler["name"] == "layer" else pooler["name"]


def _moee_word(pooler: Config) -> str:
    """Return `moee` for the variant as published, else what differs too: `moee_hidden_mean_all`."""
    variant, layers = pooler["variant"], pooler["hidden_layers"]
    of_hidden, of_routing = pooler["hidden_tokens"], pooler["routing_tokens"]
    tokens = [of_routing if variant == "routing" else of_hidden]
    if variant in ("concat", "sum") and of_hidden != of_routing:
        tokens = [f"h{of_hidden}", f"r{of_routing}"]
    parts = [f"{pooler['alpha']:g}"] if variant == "sum" and pooler["alpha"] != 1 else []
    if variant != "routing" and layers != "last":
        parts += [*tokens, layers]
    elif tokens != ["last"]:
        parts += tokens
    return "_".join(["moee", *([variant] if variant != "sum" or parts else []), *parts])


def finished_runs(patterns: str | list[str]) -> list[tuple[Path, Config]]:
    """Return (run folder, manifest) of the finished runs that match, warning of each other match by name.

    Raises `UserError` for a pattern without match, and where the only match is no finished run.
    """
    runs, refused = [], []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        paths = [Path(pattern)] if Path(pattern).is_dir() else map(Path, sorted(glob.glob(pattern, recursive=True)))
        folders = [path for path in paths if path.is_dir() and not _of_scores(path)]
        if not folders:
            raise UserError(
                f"No run folder matches {pattern}. Give run=<runs_dir>/<study>/<pooler>-<attn>/seed<n>, or train first."
            )
        for folder in folders:
            try:
                runs.append((folder, _manifest(folder)))
            except UserError as error:
                refused.append(str(error))
    if not runs:
        raise UserError(refused[0] if refused else "run= names no folder. Give run=<run folder>.")
    for line in refused:
        print(f"skipped: {line}", file=sys.stderr)
    return list(dict(runs).items())


def _of_scores(path: Path) -> bool:
    """Whether a folder lies below the results of mteb, where a copy of a manifest is no run."""
    return any((up.parent / "tasks.json").is_file() for up in (path, *path.parents) if up.name == "results")


def _manifest(folder: Path) -> Config:
    manifest = read_manifest(folder)
    if manifest["status"] != "finished":
        raise UserError(
            f"{folder} is not finished (status {manifest['status']}). Give its train.py command again to continue it."
        )
    return {**manifest, "study": whole_study(folder.absolute().parents[1], manifest["study"])}
