"""The encoders to score: finished runs, their untrained starts, or an untrained reference without any run."""

import glob
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cli.compose import composed, plain
from cli.errors import UserError
from cli.limits import check_dims
from encoders.templates import DEFAULT
from evaluation.candidates.moee_readings import moee_word
from evaluation.candidates.prefixes import Prefix, Siblings
from evaluation.candidates.text_lengths import Measure, measure_of
from evaluation.embeddings.cache import Encoder, Store
from evaluation.embeddings.store import open_store
from records.fingerprint import of_value
from records.lineage import label, read_stages
from records.manifest import read_manifest

Config = dict[str, Any]
NEEDED = ("study", "pooler", "attn", "seed", "status", "config")
UNTRAINED = (None, "also", "only")
OF_TRAINING = (  # what the start of a run has not
    *("batch_order_sha256", "steps", "tokens", "flops", "flops_gap", "seconds", "tokens_per_second"),
    *("peak_memory_bytes", "peak_memory_of"),
    *("loss", "validation_ndcg_at_10", "collapse", "states", "manifest_sha256", "held_out", "masked_tokens"),
)


@dataclass(frozen=True)
class Candidate:
    """One encoder to score. It is loaded only when its turn comes."""

    manifest: Config  # the run's own; for an untrained one what stands in for it, status "untrained"
    results: Path  # folder that gets results/ and tasks.json
    folder: Path | None = None  # the run folder; None for an untrained one
    dim: int | None = None  # how many entries of a vector are scored; None: all
    siblings: Siblings | None = None  # the other dimensions of the same encoder

    @property
    def trained(self) -> bool:
        """Return whether it is the result of a run."""
        return self.folder is not None

    @property
    def name(self) -> str:
        """The model name in mteb's form, "study/design": `study/pooler-attn`, with `-untrained` where it is so."""
        m = self.manifest
        study = str(m["study"]).replace("/", "_").replace(" ", "_")
        return f"{study}/{m['pooler']}-{m['attn']}{self._dim}{'' if self.trained else '-untrained'}"

    @property
    def _dim(self) -> str:
        return f"-{self.dim}d" if self.dim else ""

    @property
    def title(self) -> str:
        """Name and seed, for people."""
        return f"{self.name} seed={self.manifest['seed']}"

    def load(self) -> Encoder:
        """Return the encoder. Raises `UserError` for weights that are not there or of another version."""
        if self.dim and self.siblings:
            return self.siblings.load(self.dim, replace(self, dim=None).load)
        from encoders import loading

        if self.folder is not None:
            return loading.load_run(self.folder, self.manifest["config"])
        return loading.untrained(self.manifest["config"])

    def measure(self) -> Measure:
        """Return the lengths of texts for this encoder; of the model only configuration and tokenizer are read.

        Raises `UserError` where they cannot be.
        """
        return measure_of(self.manifest["config"])

    @property
    def measured_alike(self) -> str:
        """Digest of all that `measure` depends on."""
        config = self.manifest["config"]
        return of_value([config.get(key) for key in ("model", "max_length", "evaluation", "template")])

    @property
    def checkpoint(self) -> str:
        """Candidates of one checkpoint share their forward passes."""
        return f"{self.results} {replace(self, dim=None).title}" if self.dim else f"{self.results} {self.title}"

    def store(self, encoder: Encoder, cache_dir: Path | None) -> Store:
        """Return where the embeddings of `encoder`, which `load` gave, are kept; of a prefix the whole vectors are."""
        if isinstance(encoder, Prefix):
            return encoder.open_store(cache_dir)
        return open_store(encoder, cache_dir)


def candidates(cfg: Config) -> list[Candidate]:
    """Return what `run`, `untrained` and, for run=null, the groups model, pooler and attn ask for, in path order.

    Each of evaluation.dims follows as a candidate of its own, which says in its manifest's evaluation.dims which one
    it is. Raises `UserError` for a pattern without match, or where no match is a finished run.
    """
    return [dim for whole in _whole(cfg) for dim in each_dim(whole)]


def each_dim(whole: Candidate) -> list[Candidate]:
    """Return the candidate itself, or one for each of its configuration's evaluation.dims."""
    config = whole.manifest["config"]
    dims = config.get("evaluation", {}).get("dims")
    if dims is None:
        return [whole]
    check_dims("evaluation.dims", dims)
    siblings = Siblings(dims)
    own = [{**config, "evaluation": {**config["evaluation"], "dims": [dim]}} for dim in dims]
    return [
        replace(whole, manifest={**whole.manifest, "config": c}, dim=dim, siblings=siblings)
        for dim, c in zip(dims, own, strict=True)
    ]


def _whole(cfg: Config) -> list[Candidate]:
    wanted = {True: "only", False: None}.get(cfg["untrained"], cfg["untrained"])
    if wanted not in UNTRAINED:
        raise UserError(f"There is no untrained={wanted}. Write untrained=also (before and after) or untrained=only.")
    if cfg["run"] is None:
        stages = read_stages(cfg.get("lineage"))
        study = _zero_shot_study(cfg) + (f",lineage={label(stages, cfg['seed'])}" if stages else "")
        manifest = {"study": study, "pooler": pooler_word(cfg["pooler"]), "attn": cfg["attn"]["name"]}
        if stages:
            manifest["lineage"] = [stage.facts for stage in stages]
        results = Path(cfg["results"] or Path(cfg["runs_dir"]) / cfg["study"] / "scores")
        return [Candidate({**manifest, "seed": cfg["seed"], **_untrained(cfg)}, results)]
    found = []
    own = changed_evaluation(cfg.get("evaluation", {}))
    for folder, held in finished_runs(cfg["run"]):
        config = {**held["config"], "evaluation": {**held["config"].get("evaluation", {}), **own}}
        manifest = {**held, "config": config}
        results = Path(cfg["results"] or folder.absolute().parents[1] / "scores")
        if wanted:
            start = {key: value for key, value in manifest.items() if key not in OF_TRAINING}
            found.append(Candidate({**start, **_untrained(config)}, results))
        if wanted != "only":
            found.append(Candidate(manifest, results, folder))
    return found


def pooler_word(pooler: Config) -> str:
    """Return the name of an untrained pooler in folders and tables; each layer, pooling and reading has its own."""
    if pooler["name"] == "moee":
        return moee_word(pooler)
    return f"layer{pooler['layer']}_{pooler['pooling']}" if pooler["name"] == "layer" else pooler["name"]


def changed_evaluation(asked: Config) -> Config:
    """Return the keys of `evaluation` that the command line sets: they come before what the runs say."""
    usual = plain(composed("evaluate"))["evaluation"]
    return {key: value for key, value in asked.items() if value != usual[key]}


def finished_runs(patterns: str | list[str]) -> list[tuple[Path, Config]]:
    """Return (run folder, manifest) of the finished runs that match, warning of each other match by name.

    Raises `UserError` for a pattern without match, and where the only match is no finished run.
    """
    folders = [
        folder for pattern in ([patterns] if isinstance(patterns, str) else patterns) for folder in _match(pattern)
    ]
    found, refused = [], []
    for folder in dict.fromkeys(folders):
        try:
            found.append((folder, _manifest(folder)))
        except UserError as error:
            refused.append(str(error))
    if not found:
        raise UserError(
            refused[0]
            if len(refused) == 1
            else f"None of {len(refused)} folders is a finished run; the first: {refused[0]}"
        )
    for line in refused:
        print(f"skipped: {line}", file=sys.stderr)
    return found


def _match(pattern: str) -> list[Path]:
    paths = [Path(pattern)] if Path(pattern).is_dir() else map(Path, sorted(glob.glob(pattern, recursive=True)))
    folders = [p for p in paths if p.is_dir() and "scores" not in p.parts]
    if not folders:
        raise UserError(
            f"No run folder matches {pattern}. Give run=<runs_dir>/<study>/<pooler>-<attn>/seed=<n>, or train first."
        )
    return folders


def _manifest(folder: Path) -> Config:
    manifest = read_manifest(folder)
    lacking = [key for key in NEEDED if key not in manifest]
    if lacking:
        raise UserError(f"The manifest of {folder} has no key {', '.join(lacking)}. Train the run again.")
    if manifest["status"] != "finished":
        raise UserError(
            f"{folder} is not finished (status {manifest['status']}). Give its train.py command again to continue it."
        )
    return {**manifest, "study": _study(folder, manifest["study"])}


def _study(folder: Path, study: str) -> str:
    """The study's name with what deviates from the defaults (`embedded,lora.r=8`), as train.py names the folder."""
    named = folder.absolute().parents[1].name
    return named if named.startswith(f"{study},") else study


def _zero_shot_study(cfg: Config) -> str:
    """The study's name with a template other than the usual one, as train.py names it: vectors of its own."""
    name = cfg.get("template", {}).get("name", DEFAULT.name)
    return cfg["study"] if name == DEFAULT.name else f"{cfg['study']},template={name}"


def _untrained(config: Config) -> Config:
    return {"status": "untrained", "config": config}
