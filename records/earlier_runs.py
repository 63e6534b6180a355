"""Finished runs that a run starts from: stages, merged into the base in order, and those that its LoRA starts as."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from cli.compose import flat
from cli.errors import UserError
from records.files import of_file, of_value
from records.manifest import OF_HEADS, below, numeric_config, read_manifest

ADAPTER = "adapter/adapter_model.safetensors"
OTHER_RUNS = {"init.merge": "merged", "init.lora": "start", "adapter.experts": "experts"}  # key -> fact of a manifest
FUNCTION = ("attn", "template", "lora.targets")
# key that names runs -> keys in which they must agree with the run that starts from them
ALIKE = {"init.lora": FUNCTION, "adapter.experts": (*FUNCTION, "model.sliding_window", "lora.r", "lora.alpha")}
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

    trained: whether the run's own count. What the base model read is not known.
    """
    earlier = [run for fact in OTHER_RUNS.values() for run in manifest.get(fact) or ()]
    own = data_parts(manifest.get("data") or {}).values() if trained else ()
    return list(dict.fromkeys([*(sha256 for run in earlier for sha256 in run["data"]), *own]))


def data_parts(data: Mapping[str, Any]) -> dict[str, str]:
    """Return source of a mix that has a share -> sha256; "" -> sha256 of data that are no mix, as a manifest says."""
    if "of_source" in data:
        return {name: facts["sha256"] for name, facts in data["of_source"].items() if facts["share"]}
    return {"": data.get("sha256", "")}


def other_runs(config: Mapping[str, Any]) -> dict[str, list[Stage]]:
    """Return key -> the finished runs that it names, of every key of `OTHER_RUNS`. Raises `UserError` as they do."""
    return {"init.merge": read_stages(config["init"]["merge"]), **{key: read_starts(config, key) for key in ALIKE}}


def read_stages(words: str | Sequence[str] | None) -> list[Stage]:
    """Return the stages of `init.merge=[...]`, in order; each word is a run folder, or a glob that one folder matches.

    `mntp:<glob>` names, of the folders that match, the one whose objective is mntp, trained on the stages before it.
    Raises `UserError` for what is no run, is not finished, has no adapter, or was itself trained on other stages than
    those named before it: its adapter is a change of weights that nobody would have.
    """
    stages: list[Stage] = []
    for word in _listed(words):
        stages.append(_stage(word, stages, "init.merge"))
    return stages


def read_starts(config: Mapping[str, Any], key: str) -> list[Stage]:
    """Return the runs of `init.lora=[...]` or of `adapter.experts=[...]`, trained on the stages of `init.merge=`.

    None where experts are drawn. Raises `UserError` as `read_stages` does, and for a run that differs in a key of
    `ALIKE`: its adapter changes another function, or has another size.
    """
    words: Any = flat(dict(config)).get(key)
    if words is None or isinstance(words, int):
        return []
    before = read_stages(config["init"]["merge"])
    runs = [_stage(word, before, key) for word in _listed(words)]
    mine = _compared(config, ALIKE[key])
    for run in runs:
        theirs = _compared(run.manifest["config"], ALIKE[key])
        name = next((name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)), "")
        if name:
            raise UserError(
                f"{key}: {run.folder} was trained with {name}={theirs.get(name)}, and here {name}={mine.get(name)}. "
                "Name runs that have the same, or change it here."
            )
    return runs


def _compared(config: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    values = {**flat(dict(config)), "lora.targets": sorted(config["lora"]["targets"])}
    return {key: value for key, value in values.items() if below(key, keys) and key not in OF_HEADS}


def _listed(words: str | Sequence[str] | None) -> Sequence[str]:
    return [words] if isinstance(words, str) else words or ()


def recorded_stages(folder: Path, words: str | Sequence[str] | None) -> list[Stage]:
    """Return the stages of the finished run in `folder`, where its manifest's paths lead or in its own runs_dir.

    Raises `UserError` where a stage is no longer the one that the run was trained on.
    """
    facts = read_manifest(folder).get("merged", []) if words else []
    beside = folder.absolute().parents[2]
    there = [w if _matches(w) else str(beside / fact["run"]) for w, fact in zip(_listed(words), facts, strict=True)]
    stages = read_stages(there)
    for stage, fact in zip(stages, facts, strict=True):
        if stage.adapter_sha256 != fact["adapter_sha256"]:
            fault = f"{folder} was trained on another {fact['run']} than the one in {stage.folder}"
            raise UserError(f"{fault} (its adapter has changed). Put that stage back, or train the run again.")
    return stages


def label(stages: Sequence[Stage], seed: int) -> str:
    """Return `mntp-1a2b3c4d+simcse-5e6f7a8b`: objective and settings of each stage, for the names of run folders.

    The same for all seeds of a study whose stages have the seed of the run; another seed is named.
    """
    names = []
    for stage in stages:
        settings = numeric_config(stage.manifest["config"]) | {"init.merge": None}  # those stages are named before it
        if settings["init.lora"]:
            settings["init.lora"] = [fact["run"].rpartition("/")[0] for fact in stage.manifest["start"]]
        other = stage.manifest["seed"]
        names.append(f"{stage.objective}-{of_value(settings)[:8]}{'' if other == seed else f'.{other}'}")
    return "+".join(names)


def _stage(word: str, before: Sequence[Stage], key: str) -> Stage:
    """The run that a word names, which must have been trained on the stages before it."""
    folder = _folder(word, before, key)
    manifest = read_manifest(folder)
    if manifest["status"] != "finished":
        raise UserError(f"The stage {folder} is not finished. Give its train.py command again first.")
    if not (folder / ADAPTER).is_file():
        mixture = manifest["config"].get("adapter", {}).get("name", "lora") != "lora"
        what = "is a mixture of experts, not one LoRA" if mixture else f"has no {ADAPTER}: it trained a head alone"
        raise UserError(f"The stage {folder} {what}. Name a run of adapter=lora.")
    if _adapters(manifest) != [stage.adapter_sha256 for stage in before]:
        theirs, here = [fact["run"] for fact in manifest.get("merged", [])], [stage.name for stage in before]
        raise UserError(
            f"The stage {folder} was trained on top of {', '.join(theirs) or 'the base alone'}, not of "
            f"{', '.join(here) or 'the base alone'}. Name in init.merge what it was trained on, in order, before it."
        )
    return Stage(folder, manifest, of_file(folder / ADAPTER))


def _folder(word: str, before: Sequence[Stage], key: str) -> Path:
    runs = _matches(word)
    if len(runs) > 1 and OF_OBJECTIVE.match(word):
        wanted = [stage.adapter_sha256 for stage in before]
        runs = [folder for folder in runs if _adapters(read_manifest(folder)) == wanted] or runs
    if len(runs) != 1:
        many = f"{len(runs)} folders match {word} ({runs[0]}, ...)" if runs else f"there is no run folder {word}"
        raise UserError(f"{key}: {many}. Train it first, or name one run folder.")
    return runs[0]


def _matches(word: str) -> list[Path]:
    """The folders that a word of `init.merge=` may mean; of `mntp:<glob>` those whose objective is mntp."""
    objective, _, pattern = word.partition(":") if OF_OBJECTIVE.match(word) else ("", "", word)
    path = Path(pattern).expanduser()
    folders = [path] if path.is_dir() else sorted(Path(p) for p in glob(str(path)) if Path(p).is_dir())
    if not objective:
        return folders
    runs = [folder for folder in folders if (folder / "manifest.json").is_file()]
    return [folder for folder in runs if read_manifest(folder)["config"]["objective"]["name"] == objective]


def _adapters(manifest: Mapping[str, Any]) -> list[str]:
    """sha256 of the adapters of the stages that a run was trained on."""
    return [fact["adapter_sha256"] for fact in manifest.get("merged", [])]
