"""Words of a command line, and conf/ composed of them by Hydra; a misspelt key becomes one line with the nearest."""

import re
from collections.abc import Sequence
from copy import deepcopy
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from cli.errors import UserError, nearest

HOME = Path(__file__).resolve().parent.parent  # the folder of conf/, assets/ and train.py
CONF = HOME / "conf"
SWEEP = ("-m", "--multirun")
KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a text: with digits alone, \"'5'\""}
KINDS |= {DictConfig: "left out: it has keys of its own"}
OmegaConf.register_new_resolver("twice", lambda number: 2 * number, replace=True)  # design=echo_long
OmegaConf.register_new_resolver(  # model=smollm2_135m
    "folder_or", lambda path, hub: path if any(Path(at, path).is_dir() for at in (".", HOME)) else hub, replace=True
)


@cache
def groups() -> list[str]:
    """The groups of conf/, by name."""
    return sorted(path.name for path in CONF.iterdir() if path.is_dir())


@lru_cache
def options(group: str) -> dict[str, dict[str, Any]]:
    """Return option -> its keys as written in conf/<group>/<option>.yaml."""
    files = sorted((CONF / group).rglob("*.yaml"))
    return {file.relative_to(CONF / group).with_suffix("").as_posix(): _read(file) for file in files}


@cache
def own_keys(name: str) -> tuple[str, ...]:
    """Return the keys and groups that conf/<name>.yaml itself states, beyond those of conf/encoder.yaml."""
    stated = _read(CONF / f"{name}.yaml")
    entries = stated.pop("defaults", [])
    return (*stated, *(group for entry in entries if isinstance(entry, dict) for group in entry))


def _read(file: Path) -> dict[str, Any]:
    return OmegaConf.to_container(OmegaConf.load(file), resolve=False) or {}  # type: ignore[return-value]


def composed(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """Compose conf/<name>.yaml with Hydra overrides, without running anything.

    Raises `UserError` for an unknown key, group or option, and for a value of another kind than the key's default.
    """
    for word in overrides:
        key, _, value = word.partition("=")
        if key in groups() and (value.startswith("[") or value == "null"):
            raise UserError(f"{word} is no option of {key}. Give one of them, or a run of each: -m {key}=a,b.")
    cfg = deepcopy(composition(name, tuple(overrides))[0])
    for key in {word.partition("=")[0] for word in overrides} - {*groups(), "trainer.progress"}:  # true, false or lines
        default = composition(name, _chosen(overrides))[0]
        was, value = (OmegaConf.select(of, key, throw_on_resolution_failure=False) for of in (default, cfg))
        several = isinstance(value, str) and "," in value
        kind = "a list: [a,b]" if several and isinstance(was, ListConfig) else KINDS.get(type(was))
        if kind and value is not None and KINDS.get(type(value)) != kind:
            raise UserError(f"{key}={value} must be {kind}." + " A run of each: -m." * several)
    if str(cfg.get("study", name)).strip() in ("", ".", "..", "None"):
        raise UserError(f"study={cfg.study} names no folder below runs_dir. Give study=<name>.")
    return cfg


@lru_cache(maxsize=256)  # a tenth of a second each
def composition(name: str, overrides: tuple[str, ...]) -> tuple[DictConfig, dict[str, str | None]]:
    """Return what `composed` does, kinds of values unchecked and not to be changed, and the option of each group."""
    state = GlobalHydra.instance()
    outer, state.hydra = state.hydra, None  # of the Hydra job that calls this, put back afterwards
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose(name, overrides=list(overrides), return_hydra_config=True)
        with open_dict(cfg):
            choices = dict(cfg.pop("hydra").runtime.choices)
        plain(cfg)  # or what cannot be resolved fails in the job
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise UserError(_explained(error, name, overrides)) from error
    finally:
        state.hydra = outer
    return cfg, choices


def plain(cfg: DictConfig) -> dict:
    """Return the resolved config as plain dictionaries and lists."""
    return OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False)  # type: ignore[return-value]


def flat(value: object, prefix: str = "") -> dict[str, object]:
    """Flatten nested dictionaries to dotted keys: {"lora": {"r": 16}} -> {"lora.r": 16}."""
    if not isinstance(value, dict) or (not value and prefix):
        return {prefix: value}
    return {k: v for key, sub in value.items() for k, v in flat(sub, f"{prefix}.{key}" if prefix else str(key)).items()}


def _explained(error: Exception, name: str, overrides: Sequence[str]) -> str:
    text = f"{error} {error.__cause__}"
    if of := re.search(r"Could not find '(hydra/\w+|\w+)/([^']+)'", text):
        valid = options(of[1]) if of[1] in groups() else re.findall(r"^\t(\S+)$", text, re.M)  # Hydra's own
        return f"There is no {of[1]} '{of[2]}'. {nearest(of[2], valid)}" + " A run of each: -m." * ("," in of[2])
    key = re.search(r"full_key: (\S+)", text) or re.search(r"Could not override '([^']+)'", text)
    if key and ("not in struct" in text or "No match in the defaults list" in text):
        typed = next((word.partition("=")[0] for word in overrides if word.startswith(f"{key[1]}.")), key[1])
        mend = _owners(typed) or ("Leave it out." if typed in groups() else nearest(typed, _keys(name, overrides)))
        return f"There is no {'group' if typed in groups() else 'key'} '{typed}' in conf/{name}.yaml. {mend}"
    return f"The configuration cannot be composed: {' '.join(str(error).split(chr(10))[:2])}"


def _owners(key: str) -> str:
    """The options of a group that do have `key`: data.path belongs to data=jsonl and data=ir_data."""
    group, _, rest = key.partition(".")
    owners = [f"{group}={name}" for name, keys in options(group).items() if rest in flat(keys)]
    return f"It belongs to {', '.join(owners)}." if owners else ""


def _keys(name: str, overrides: Sequence[str]) -> set[str]:
    keys = flat(OmegaConf.to_container(composition(name, _chosen(overrides))[0], resolve=False))
    return {*keys, *(key.rpartition(".")[0] for key in keys), *groups()} - {""}


def _chosen(overrides: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in overrides if word.partition("=")[0] in groups())


def flags_and_words(program: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return Hydra's flags, and the `readable` overrides. Raises `UserError` for a lone word, or a key with dashes."""
    words = [word for word in arguments if "=" in word and not word.startswith("-")]
    flags = [word for word in arguments if word not in words]
    stray = [w for w in flags if w[:1] != "-" or (w[:2] == "--" and w[2:].split("=")[0] in _keys(program[:-3], ()))]
    if stray and set(flags) <= {*stray, *SWEEP}:
        raise UserError(f"'{stray[0]}' is no key=value, or 'key=a b' where it has spaces. See python {program} --help.")
    return flags, readable(words, bool({*SWEEP} & {*flags}))


def readable(words: Sequence[str], several: bool = True) -> list[str]:
    """Return the words as Hydra reads each value as it is typed: in quotes what its grammar would refuse or change.

    several: whether a comma separates the values of a sweep. `data` and `model` alone take new keys by a plus.
    """
    bare = [word if word.startswith(("+data", "+model.")) else word.lstrip("+") for word in words]
    return [_readable(word, several) for word in bare]


def _readable(word: str, several: bool) -> str:
    key, equals, value = word.partition("=")
    known, text = parsed(word), f"{key}{equals}{quoted(value)}"
    of_a_sweep = known and known.is_sweep_override() and not several and value[-1:] != ")"
    if known and not of_a_sweep and (value == value.strip() or not isinstance(known.value(), str)):
        return word
    if value[:1] == "[" and value[-1:] == "]":  # each item as it is typed
        items = [item.strip() for item in value[1:-1].split(",")]
        text = f"{key}=[{','.join(item if parsed(f'x={item}') else quoted(item) for item in items)}]"
    if not key or (value[:1] in ("{", "'", '"') and value[:1] == value[-1:].replace("}", "{")) or not parsed(text):
        raise UserError(f"{word} cannot be read. Write key=value, names with spaces in quotes of their own.")
    return text


def quoted(value: str) -> str:
    """Return `value` in quotes, where Hydra's grammar reads all but a quote and the backslashes before one as it is."""
    escaped = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value)
    return f"'{escaped}'"


def parsed(word: str) -> Override | None:
    """Return what Hydra reads in a word; None where it is outside its grammar."""
    try:
        return OverridesParser.create().parse_override(word)
    except HydraException:
        return None


def check_sweep(program: str, words: Sequence[str], several: bool) -> list[str]:
    """Compose with each value, before the first run; return the keys that have several, as -m allows."""
    values = [_values(word) if several else [word] for word in words]
    for n in range(max(map(len, values), default=1)):
        composed(program, [of[min(n, len(of) - 1)] for of in values])
    return [of[0].lstrip("+").partition("=")[0] for of in values if len(of) > 1]


def _values(word: str) -> list[str]:
    """The words that a sweep makes of one: `attn=causal,bi` -> `attn=causal`, `attn=bi`."""
    override, key = parsed(word), word.partition("=")[0]
    if override is None or not override.is_sweep_override():
        return [word]
    value = override.value()
    names = value.filter([*options(key)]) if isinstance(value, Glob) else override.sweep_string_iterator()
    return [f"{key}={name}" for name in names]


def late(words: Sequence[str]) -> list[str]:
    """Return the words of a sweep, `pooler.<key>=<value>` as `choice(<value>)`, which waits for the job.

    Hydra first composes without the words that are swept, and the default pooler may lack the key.
    """
    plain = [word.startswith("pooler.") and len(_values(word)) == 1 for word in words]
    return [f"{word.replace('=', '=choice(', 1)})" if one else word for one, word in zip(plain, words, strict=True)]


def help_screen(name: str) -> str:
    """Return conf/<name>.yaml, of one that shares conf/encoder.yaml the lines on top alone: one screen."""
    text = (CONF / f"{name}.yaml").read_text(encoding="utf-8")
    return re.sub(r"(?m)^# ?", "", text.partition("\ndefaults:")[0] if "\n  - encoder" in text else text)


def is_bundled(base: str | None) -> bool:
    """Return whether a base, by its model.path, lies in this repository; None: it has no path yet."""
    return (base or "assets/").startswith("assets/")


def with_recipe(words: Sequence[str], program: str = "train") -> list[str]:
    """Return the words, before them experiment=finetune where a base is not bundled and no experiment is named.

    A sweep has one recipe. experiment=bundled is that of the bundled bases for another one. program: any other than
    train has no experiment=, and gets the recipe's keys of conf/encoder.yaml: its vectors are those of a run's start.
    """
    given = {word.partition("=")[0].lstrip("+"): _values(word) for word in words}
    values = {key: [word.partition("=")[2].strip("'\"") for word in of] for key, of in given.items()}
    named = [options("model").get(name, {}).get("path") for name in values.get("model", ["tiny"])]
    if all(map(is_bundled, values.get("model.path", named))) or "experiment" in given:
        return [*words]
    recipe, own = options("experiment")["finetune"].items(), own_keys("encoder")
    of_encoder = [f"{key}={'null' if value is None else value}" for key, value in recipe if key in own]
    return [*(["experiment=finetune"] if program == "train" else of_encoder), *words]
