"""The folder of a run, <runs_dir>/<study>/<pooler>-<attn>/seed<n>: no two configurations have the same."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.compose import composition, flat, groups, options, own_keys, plain, with_recipe
from records.earlier_runs import OTHER_RUNS, label, other_runs
from records.files import of_value
from records.manifest import BOOKKEEPING, below

CHOOSING = ("experiment", "reference_fault")  # choose members of other groups: their name says it all
# What tells the designs and stages of one study apart, and is looked up by the folder's name: named in every study.
STAGES = ("objective", "objective.domains")
OF_A_DESIGN = (*CHOOSING, "design", "init", "pooler", "attn", "adapter", "template", "head", "normalize")
SOURCES = ("reference_fault", "head", "attn", "text_length")  # other keys have their values: named here alone
START = "start"  # below a run's folder: adapter and head before the first step, where other runs give it these
LONGEST_NAME = 60


def run_folder(config: dict[str, Any], words: Sequence[str]) -> Path:
    """Return the folder of a configuration. words: the overrides of conf/train.yaml that make it.

    The study's name is followed by every group and key that differs from the defaults, so that two runs that
    differ in any key never share a folder: `bundled+lora.r-8`. In a study that has a name of its own (study=<name>)
    what all its runs are given is its default, and not named.
    """
    cell = Path(f"{config['pooler']['name']}-{config['attn']['name']}", f"seed{config['seed']}")
    name = "+".join([config["study"], *_deviations("train", config, words, _fixed_words(config, words))])
    return Path(config["runs_dir"], _path_safe(name), cell)


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
    """Return `group-option` of each option that is not expected, then `key-value` of each key with another value.

    fixed: the words that the study's own name stands for. elsewhere: keys that the rest of the name says.
    """
    choices = composition(program, tuple(words))[1].items()  # of design= its settings are named
    chosen = {k: v for k, v in choices if v not in (None, "none") and k != "design" and not k.startswith("hydra/")}
    expected = _expected_options(program, words, fixed, chosen)
    first = sorted(chosen.items(), key=lambda pair: (pair[0] != "objective", pair))  # a glob tells stages by it
    named = [f"{k}-{v}".replace("/", ".") for k, v in first if k not in ("pooler", "attn") and v != expected.get(k)]
    values, (usual, given) = flat(config), _usual_values(program, config, fixed, chosen)
    known = values.keys() | (usual.keys() if program == "train" else ())
    differing = given | {k for k in known if values.get(k) != usual.get(k)}
    keys = sorted(k for k in differing if not below(k, (*BOOKKEEPING, *elsewhere)))
    return [*named, *(f"{k}-{_runs(config, k) if k in OTHER_RUNS else short(values.get(k))}" for k in keys)]


def _expected_options(
    program: str, words: Sequence[str], fixed: Sequence[str], chosen: Mapping[str, str]
) -> dict[str, str | None]:
    """Return group -> the option that the fixed words, a recipe or a mix choose where nothing else is said."""
    parents = [f"{k}={chosen[k]}" for k in CHOOSING if k in chosen]
    implying = (*(word for word in fixed if _chooses(word)), *parents)
    expected = {**composition(program, implying)[1], **dict.fromkeys(CHOOSING)}
    if any(k.startswith("data@") for k in chosen):  # what a mix takes for its sources by default
        of_mix = composition(program, (*implying, f"data={chosen['data']}"))[1]
        expected |= {k: v for k, v in of_mix.items() if k.startswith("data@")}
    if with_recipe(other := [w for w in words if not w.startswith("experiment=")]) != other:
        expected["experiment"] = "finetune"  # the base's own recipe
    return expected


def _usual_values(
    program: str, config: dict[str, Any], fixed: Sequence[str], chosen: Mapping[str, str]
) -> tuple[dict[str, Any], set[str]]:
    """Return each key's value under the options `chosen`, and the keys of `SOURCES` that have another one.

    Keys that take their values from `SOURCES` follow what these have.
    """
    place = [f"{k}='{config[k]}'" for k in ("study", "runs_dir") if k in config]  # stages are found by them
    words = [*place, f"seed={config['seed']}", *(w for w in fixed if not _chooses(w)), *map("=".join, chosen.items())]
    usual = flat(plain(composition(program, tuple(words))[0]))
    given = {k: v for k, v in flat(config).items() if below(k, SOURCES) and v != usual.get(k)}
    if given:
        words += [f"{k}={short(v)}" for k, v in given.items()]
        usual = flat(plain(composition(program, tuple(words))[0]))
    return usual, {*given}


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
