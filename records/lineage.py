"""Finished runs that a run starts from: stages, merged into the base in order, and those that its LoRA starts as."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from cli.errors import UserError
from records.fingerprint import of_file, of_value
from records.identity import BASE, below, numeric_config, of_states
from records.manifest import read_manifest

ADAPTER = "adapter/adapter_model.safetensors"
OTHER_RUNS = {"lineage": "lineage", "lora.start": "start", "adapter.experts": "experts"}  # key -> fact of a manifest
ALIKE = ("attn", "template", "lora.targets")
OF_EXPERTS = (*ALIKE, "model.sliding_window", "lora.r", "lora.alpha")
OF_OBJECTIVE = re.compile(r"[a-z]+:(?=.)")  # mntp:<glob>


@dataclass(frozen=True)
class Stage:
    """One earlier run. facts: what the manifests of later runs say of it."""

    folder: Path
    manifest: Mapping[str, Any]
    adapter_sha256: str

    @property
    def name(self) -> str:
        """`<study>/<pooler>-<attn>/seed<n>`."""
        return "/".join(self.folder.absolute().parts[-3:])

    @property
    def objective(self) -> str:
        """mntp, simcse, infonce."""
        return str(self.manifest["config"]["objective"]["name"])

    @property
    def facts(self) -> dict[str, Any]:
        """Run folder, objective, adapter, floating-point operations and data, as a manifest keeps them."""
        known = {"run": self.name, "objective": self.objective, "adapter_sha256": self.adapter_sha256}
        return known | {"flops": self.manifest.get("flops"), "data": texts_read(self.manifest)}


def texts_read(manifest: Mapping[str, Any], trained: bool = True) -> list[str]:
    """Return the sha256 of the data that a run's weights were trained on, those of the runs that it starts from first.

    Of a mix, of each source that has a share. "" stands for data that an older manifest does not name. trained: whether
    the run's own count. What the base model read is not known.
    """
    earlier = [run for fact in OTHER_RUNS.values() for run in manifest.get(fact) or ()]
    own_digests = data_parts(manifest.get("data") or {}).values() if trained else ()
    return list(dict.fromkeys([*(sha256 for run in earlier for sha256 in run.get("data", [""])), *own_digests]))


def data_parts(data: Mapping[str, Any]) -> dict[str, str]:
    """Return source of a mix -> sha256, those without a share left out; "" -> sha256 of data that are no mix.

    data: what a manifest says of them.
    """
    if "of_source" in data:
        return {name: facts["sha256"] for name, facts in data["of_source"].items() if facts["share"]}
    return {"": data.get("sha256", "")}


def other_runs(config: Mapping[str, Any]) -> dict[str, list[Stage]]:
    """Return key -> the finished runs that it names, of every key of `OTHER_RUNS`. Raises `UserError` as they do."""
    runs = (read_stages(config.get("lineage")), read_starts(config), read_experts(config))
    return dict(zip(OTHER_RUNS, runs, strict=True))


def read_stages(words: Sequence[str] | None) -> list[Stage]:
    """Return the stages of `lineage=[...]`, in order; each word is a run folder, or a glob that one folder matches.

    `mntp:<glob>` names, of the folders that match, the one whose objective is mntp, trained on the stages before it.

    Raises `UserError` for what is no run, is not finished, has no adapter, or was itself trained on other stages than
    those named before it: its adapter is a change of weights that nobody would have.
    """
    if isinstance(words, str):
        raise UserError(f"lineage={words} must be a list of run folders: lineage=[{words}].")
    stages: list[Stage] = []
    for word in words or ():
        stages.append(_stage(_folder(word, stages), stages))
    return stages


def read_starts(config: Mapping[str, Any]) -> list[Stage]:
    """Return the runs of `lora.start=[...]`, whose adapters were trained on the stages of `lineage=`.

    Raises `UserError` as `read_stages` does, and for a run of another attention, template or set of layers: its adapter
    changes another function.
    """
    return _read_alike(config, "lora.start", config["lora"].get("start"), ALIKE)


def read_experts(config: Mapping[str, Any]) -> list[Stage]:
    """Return the runs of `adapter.experts=[...]`, as `read_starts`; none where experts are drawn, or there are none.

    Raises `UserError` also for a run of another rank or scaling.
    """
    words = config.get("adapter", {}).get("experts")
    return [] if isinstance(words, int) else _read_alike(config, "adapter.experts", words, OF_EXPERTS)


def _read_alike(
    config: Mapping[str, Any], key: str, words: Sequence[str] | None, alike: tuple[str, ...]
) -> list[Stage]:
    """The runs that `words` name, which agree with `config` in the keys `alike`."""
    if isinstance(words, str):
        raise UserError(f"{key}={words} must be a list of run folders: {key}=[{words}].")
    before = read_stages(config.get("lineage")) if words else []
    runs = [_stage(_folder(word, before, key), before) for word in words or ()]
    mine = _states(config)
    for run in runs:
        theirs = _states(run.manifest["config"])
        for name in sorted(mine.keys() | theirs.keys()):
            if below(name, alike) and mine.get(name) != theirs.get(name):
                raise UserError(
                    f"{key}: {run.folder} was trained with {name}={theirs.get(name)}, and here {name}="
                    f"{mine.get(name)}. Name runs that have the same, or change it here."
                )
    return runs


def _states(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that states and LoRA depend on."""
    lora = config["lora"]
    sizes = {f"lora.{key}": lora[key] for key in ("r", "alpha")}
    return of_states(config) | sizes | {"lora.targets": sorted(lora["targets"])}


def recorded_stages(folder: Path, words: Sequence[str] | None) -> list[Stage]:
    """Return the stages of the finished run in `folder`, where its manifest's paths lead or in its own runs_dir.

    Raises `UserError` where a stage is no longer the one that the run was trained on.
    """
    if not words:
        return []
    facts = read_manifest(folder).get("lineage", [])
    beside = folder.absolute().parents[2]
    moved = [str(beside / fact["run"]) for fact in facts]
    there = [word if _matches(word) else other for word, other in zip(words, moved, strict=True)]
    stages = read_stages(there)
    for stage, fact in zip(stages, facts, strict=True):
        if stage.adapter_sha256 != fact["adapter_sha256"]:
            raise UserError(
                f"{folder} was trained on another {fact['run']} than the one in {stage.folder} (its adapter has "
                "changed). Put that stage back, or delete the run and train it again."
            )
    return stages


def check_base(stages: Sequence[Stage], fingerprints: Mapping[str, str]) -> None:
    """Refuse stages of another base. fingerprints: the facts `BASE` of the base at hand."""
    for stage in stages:
        for key, what in BASE.items():
            if key not in stage.manifest:
                raise UserError(
                    f"The manifest of the stage {stage.folder} does not state the {what} ({key}): an older version of "
                    "this program wrote it, so nothing shows that it is the same. Train that stage again."
                )
            if stage.manifest[key] != fingerprints[key]:
                raise UserError(
                    f"The stage {stage.folder} was trained on another {what} ({key}). Name stages of this base, "
                    f"or give model.path={stage.manifest['config']['model']['path']}."
                )


def label(stages: Sequence[Stage], seed: int) -> str:
    """Return `mntp-1a2b3c4d_simcse-5e6f7a8b`: objective and settings of each stage, for the names of run folders.

    The same for all seeds of a study whose stages have the seed of the run; another seed is named.
    """
    names = []
    for stage in stages:
        settings = numeric_config(stage.manifest["config"])
        settings.pop("lineage", None)  # paths; the stages themselves are named before it
        if settings.pop("lora.start", None):
            settings["lora.start"] = [fact["run"].rpartition("/")[0] for fact in stage.manifest["start"]]
        other = stage.manifest["seed"]
        names.append(f"{stage.objective}-{of_value(settings)[:8]}{'' if other == seed else f'.{other}'}")
    return "_".join(names)


def _matches(word: str) -> list[Path]:
    """The folders that a word of `lineage=` may mean; of `mntp:<glob>` those whose objective is mntp."""
    objective, _, pattern = word.partition(":") if OF_OBJECTIVE.match(word) else ("", "", word)
    path = Path(pattern).expanduser()
    folders = [path] if path.is_dir() else sorted(Path(p) for p in glob(str(path)) if Path(p).is_dir())
    if not objective:
        return folders
    runs = [folder for folder in folders if (folder / "manifest.json").is_file()]
    return [folder for folder in runs if read_manifest(folder)["config"]["objective"]["name"] == objective]


def _folder(word: str, before: Sequence[Stage], key: str = "lineage") -> Path:
    runs = _matches(word)
    if len(runs) > 1 and OF_OBJECTIVE.match(word):
        wanted = [stage.adapter_sha256 for stage in before]
        runs = [folder for folder in runs if _adapters(read_manifest(folder)) == wanted] or runs
    if len(runs) > 1:
        raise UserError(f"{key}: {len(runs)} folders match {word} ({runs[0]}, {runs[1]}, ...). Name one run folder.")
    if not runs:
        raise UserError(f"{key}: there is no run folder {word}. Train that run first, or name another.")
    return runs[0]


def _adapters(manifest: Mapping[str, Any]) -> list[str]:
    """sha256 of the adapters of the stages that a run was trained on."""
    return [fact["adapter_sha256"] for fact in manifest.get("lineage", [])]


def _stage(folder: Path, before: Sequence[Stage]) -> Stage:
    manifest = read_manifest(folder)
    if manifest["status"] != "finished":
        raise UserError(
            f"The stage {folder} is not finished (status {manifest['status']}). Give its train.py command again first."
        )
    if not (folder / ADAPTER).is_file():
        if manifest["config"].get("adapter", {}).get("name", "lora") != "lora":
            raise UserError(f"{folder} is a mixture of experts, not one LoRA. Name a run of adapter=lora.")
        frozen = manifest["config"].get("backbone", {}).get("frozen")
        mend = "It trained a head alone, so there is nothing to merge." if frozen else "Train it again."
        raise UserError(f"The stage {folder} has no {ADAPTER}. {mend}")
    if _adapters(manifest) != [stage.adapter_sha256 for stage in before]:
        names = [fact["run"] for fact in manifest.get("lineage", [])]
        raise UserError(
            f"The stage {folder} was trained on top of {', '.join(names) or 'the base alone'}, not of "
            f"{', '.join(stage.name for stage in before) or 'the base alone'}. Name in lineage what it was trained on, "
            "in order, before it."
        )
    return Stage(folder, manifest, of_file(folder / ADAPTER))
