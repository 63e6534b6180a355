"""The folder of a run, <runs_dir>/<study>/<pooler>-<attn>/seed<n>, and the runs that may use it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.compose import composition, flat, groups, options, own_keys, plain, with_recipe
from cli.errors import UserError
from records.earlier_runs import OTHER_RUNS, label, other_runs
from records.files import of_value, write_json
from records.manifest import BOOKKEEPING, MANIFEST_VERSION, below, different_keys, read_manifest, sealed

CHOOSING = ("experiment", "reference_fault")  # choose members of other groups: their name says it all
# What tells the designs and stages of one study apart, and is looked up by the folder's name: named in every study.
STAGES = ("objective", "objective.domains")
OF_A_DESIGN = (*CHOOSING, "design", "init", "pooler", "attn", "adapter", "template", "head", "normalize")
SOURCES = ("reference_fault", "head", "attn", "text_length")  # other keys have their values: named here alone
START = "start"  # below a run's folder: adapter and head before the first step, where other runs give it these
LONGEST_NAME = 60


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
                "Choose another study=<name>, name the key in the folder by axes=[<key>], or delete that folder."
            )
        return manifest["status"] == "finished"

    def write(self, manifest: Mapping[str, Any]) -> None:
        """Write manifest.json in one step."""
        write_json(self.manifest_path, sealed({"manifest_version": MANIFEST_VERSION, **manifest}))


def run_folder(config: dict[str, Any], words: Sequence[str]) -> RunFolder:
    """Return the folder of a configuration. words: the overrides of conf/train.yaml that make it.

    The study's name is followed by every group and key that differs from the defaults, so that two runs that
    differ in any key never share a folder: `bundled+lora.r-8`. In a study that has a name of its own (study=<name>)
    what all its runs are given is its default, and not named.
    """
    cell = Path(f"{config['pooler']['name']}-{config['attn']['name']}", f"seed{config['seed']}")
    name = "+".join([config["study"], *_deviations("train", config, words, _fixed_words(config, words))])
    return RunFolder(Path(config["runs_dir"], _path_safe(name), cell))


def untrained_study(config: dict[str, Any], elsewhere: Sequence[str]) -> str:
    """Return the study of an encoder that no run made, with every key of conf/encoder.yaml that deviates.

    config: conf/evaluate.yaml as composed, or one with its keys. elsewhere: keys that the rest of its name says.
    """
    chosen = {group: config[group]["name"] for group in ("model", "attn", "pooler", "template")}
    words = [f"{group}={name}" for group, name in chosen.items() if name in options(group)]
    own = {key: value for key, value in config.items() if key in own_keys("encoder")}
    recipe = with_recipe([f"model.path={config['model']['path']}"], "evaluate")
    recipe = [word for word in recipe if word.partition("=")[0] not in ("study", "model.path")]
    return _path_safe("+".join([config["study"], *_deviations("evaluate", own, words, recipe, elsewhere)]))


def whole_study(folder: Path, study: str) -> str:
    """Return a study's name with what deviates from the defaults, as its folder has it: `bundled+lora.r-8`."""
    name = folder.absolute().name
    return name if name.startswith(f"{study}+") else study


def model_name(study: str, cell: str) -> str:
    """Return the name of what is scored, in mteb's form "study/cell"."""
    return f"{study.replace('/', '_').replace(' ', '_')}/{cell}"


def folder_of_scores(runs: Path, study: str) -> str:
    """Return the name of mteb's folder for the scores of runs in <runs_dir>/<study with deviations>/<cell>."""
    return model_name(whole_study(runs.parent, study), runs.name).replace("/", "__")


def _fixed_words(config: dict[str, Any], words: Sequence[str]) -> list[str]:
    """Return the words that say what a study is: none where it has no name of its own.

    What is swept over (`axes`) and what tells designs apart is left out, since one study holds several.
    """
    keys = [word.partition("=")[0].lstrip("+~") for word in words]
    if "study" not in keys:
        return []
    left_out = (*BOOKKEEPING, *(["objective"] if "objective" in keys else ()))  # another one has other keys
    several = (*(config.get("axes") or ()), *OF_A_DESIGN, *left_out)
    return [w for key, w in zip(keys, words, strict=True) if key not in STAGES and not below(key, several)]


def _deviations(
    program: str, config: dict[str, Any], words: Sequence[str], fixed: Sequence[str], elsewhere: Sequence[str] = ()
) -> list[str]:
    choices = composition(program, tuple(words))[1].items()  # of design= its settings are named
    members = {k: v for k, v in choices if v not in (None, "none") and k != "design" and not k.startswith("hydra/")}
    parents = [f"{k}={members[k]}" for k in CHOOSING if k in members]
    chosen = [*(word for word in fixed if _chooses(word)), *parents]
    implied = {**composition(program, tuple(chosen))[1], **dict.fromkeys(CHOOSING)}
    if any(k.startswith("data@") for k in members):  # what a mix takes for its sources by default
        of_mix = composition(program, (*chosen, f"data={members['data']}"))[1]
        implied |= {k: v for k, v in of_mix.items() if k.startswith("data@")}
    if with_recipe(other := [w for w in words if not w.startswith("experiment=")]) != other:
        implied["experiment"] = "finetune"  # the base's own recipe
    first = sorted(members.items(), key=lambda member: (member[0] != "objective", member))  # a glob tells stages by it
    named = [f"{k}-{v}" for k, v in first if k not in ("pooler", "attn") and v != implied.get(k)]
    place = [f"{k}='{config[k]}'" for k in ("study", "runs_dir") if k in config]  # stages are found by them
    place += [f"seed={config['seed']}", *(w for w in fixed if not _chooses(w)), *map("=".join, members.items())]
    mine, base = flat(config), flat(plain(composition(program, tuple(place))[0]))
    if given := {k: v for k, v in mine.items() if below(k, SOURCES) and v != base.get(k)}:
        words = [*place, *(f"{k}={short(v)}" for k, v in given.items())]
        base = flat(plain(composition(program, tuple(words))[0]))
    differing = {k for k in mine.keys() | (base.keys() if program == "train" else ()) if mine.get(k) != base.get(k)}
    keys = sorted(k for k in differing | given.keys() if not below(k, (*BOOKKEEPING, *elsewhere)))
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
    """Replace what a folder name must not hold; keep the first words of long names, a digest keeping them distinct."""
    safe = re.sub(r"[^\w.+-]", "_", re.sub(r"(?<=-)[^+]*/", "", name))  # of a path its last word
    if safe == name and len(safe) <= LONGEST_NAME:
        return safe
    room = LONGEST_NAME - len("-12345678")
    kept = safe[: room + 1].rpartition("+")[0] if len(safe) > room else safe
    return f"{kept or safe[:room]}-{of_value(name)[:8]}"
