"""The folder of a run, <runs_dir>/<study>/<pooler>-<attn>/seed<n>, and the runs that may use it."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.compose import choices_of, composition, flat, groups, plain
from cli.errors import UserError
from records.files import write_json
from records.lineage import OTHER_RUNS, label, other_runs
from records.manifest import BOOKKEEPING, MANIFEST_VERSION, below, different_keys, read_manifest, sealed

UNNAMED = ("encoder", "design")  # list other groups, whose settings are named
CHOOSING = ("experiment", "divergence")  # choose members of other groups: their name says it all
# What tells the designs and stages of one study apart, and is looked up by the folder's name: named in every study.
OF_A_DESIGN = (*UNNAMED, *CHOOSING, "pooler", "attn", "objective", "stages", "lineage", "lora.start", "lora.combine")
START = "start"  # below a run's folder: adapter and head before the first step, where other runs give it these
LONGEST_NAME = 120


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def manifest_path(self) -> Path:
        """manifest.json."""
        return self.path / "manifest.json"

    def manifest(self) -> dict[str, Any]:
        """Return the manifest. Raises `UserError` where it is absent, not JSON, or of another version."""
        return read_manifest(self.path)

    def claim(self, config: dict[str, Any]) -> bool:
        """Return whether the run is already finished; refuse a folder of another run, but for keys of `BOOKKEEPING`."""
        if not self.manifest_path.exists():
            return False
        manifest = self.manifest()
        if differing := different_keys(manifest["config"], config):
            raise UserError(
                f"{self.path} holds a run of another configuration ({'; '.join(differing[:4])}). "
                "Choose another study=<name>, or delete that folder."
            )
        return manifest["status"] == "finished"

    def write(self, manifest: Mapping[str, Any]) -> None:
        """Write manifest.json in one step."""
        write_json(self.manifest_path, sealed({"manifest_version": MANIFEST_VERSION, **manifest}))


def run_folder(config: dict[str, Any], words: Sequence[str]) -> RunFolder:
    """Return the folder of a configuration. words: the overrides of conf/train.yaml that make it.

    The study's name is followed by every group and key that differs from the defaults, so that two runs that
    differ in any key never share a folder: `embedded+lora.r-8`. In a study that has a name of its own (study=<name>)
    what all its runs are given is its default, and not named.
    """
    cell = Path(f"{config['pooler']['name']}-{config['attn']['name']}", f"seed{config['seed']}")
    name = "+".join([config["study"], *_deviations(config, words, _fixed_words(config, words))])
    return RunFolder(Path(config["runs_dir"], _path_safe(name), cell))


def whole_study(folder: Path, study: str) -> str:
    """Return a study's name with what deviates from the defaults, as its folder has it: `embedded+lora.r-8`."""
    name = folder.absolute().name
    return name if name.startswith(f"{study}+") else study


def model_name(study: str, cell: str) -> str:
    """Return the name of what is scored, in mteb's form "study/cell"."""
    return f"{study.replace('/', '_').replace(' ', '_')}/{cell}"


def _fixed_words(config: dict[str, Any], words: Sequence[str]) -> list[str]:
    """Return the words that say what a study is: none where it has no name of its own.

    What is swept over (`axes`) and what tells designs apart is left out, since one study holds several.
    """
    keys = [word.partition("=")[0].lstrip("+~") for word in words]
    if "study" not in keys:
        return []
    several = {*(config.get("axes") or ()), *OF_A_DESIGN}
    left_out = (*BOOKKEEPING, *(["objective"] if "objective" in keys else ()))  # another one has other keys
    return [w for key, w in zip(keys, words, strict=True) if key not in several and not below(key, left_out)]


def _deviations(config: dict[str, Any], words: Sequence[str], fixed: Sequence[str]) -> list[str]:
    members = {k: v for k, v in choices_of("train", words).items() if v and not k.startswith("hydra/")}
    members = {k: v for k, v in members.items() if k not in UNNAMED and v != "none"}
    parents = [f"{k}={members[k]}" for k in CHOOSING if k in members]
    chosen = [*(word for word in fixed if _chooses(word)), *parents]
    implied = {**choices_of("train", chosen), **dict.fromkeys(CHOOSING)}
    if any(k.startswith("data@") for k in members):  # what a mix takes for its sources by default
        of_mix = choices_of("train", [*chosen, f"data={members['data']}"])
        implied |= {k: v for k, v in of_mix.items() if k.startswith("data@")}
    named = [f"{k}-{v}" for k, v in sorted(members.items()) if k not in ("pooler", "attn") and v != implied.get(k)]
    place = [f"{k}='{config[k]}'" for k in ("study", "runs_dir") if k in config]  # stages are found by them
    place += [f"seed={config['seed']}", *(word for word in fixed if not _chooses(word))]
    base = flat(plain(composition("train", (*(f"{k}={v}" for k, v in members.items()), *place))[0]))
    mine = flat(config)
    keys = [k for k in sorted(mine.keys() | base.keys()) if mine.get(k) != base.get(k) and not below(k, BOOKKEEPING)]
    values = [_runs(config, k) if k in OTHER_RUNS else short(mine.get(k)) for k in keys]
    return [*(name.replace("/", ".") for name in named), *(f"{k}-{v}" for k, v in zip(keys, values, strict=True))]


def _runs(config: dict[str, Any], key: str) -> str:
    runs = label(other_runs(config)[key], config["seed"])
    return runs or (short(config["adapter"]["experts"]) if key == "adapter.experts" else "none")


def _chooses(word: str) -> bool:
    return word.partition("=")[0].lstrip("+~").partition("@")[0] in groups()


def short(value: Any) -> str:
    """Return the value of a key as the names of studies have it."""
    if isinstance(value, list):
        return ",".join(map(short, value))
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _path_safe(name: str) -> str:
    """Replace what a folder name must not hold; cut long names, a hash keeping them distinct."""
    safe = re.sub(r"[^\w.+-]", "_", name)
    if safe == name and len(safe) <= LONGEST_NAME:
        return safe
    return f"{safe[:LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
