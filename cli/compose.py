"""conf/ composed by Hydra; a misspelt key or group becomes one line with the nearest valid names."""

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from cli.errors import UserError, nearest
from cli.help import CONF

OmegaConf.register_new_resolver("twice", lambda number: 2 * number, replace=True)  # design=echo_long
FREE = (
    "data.mix.",
    "model.architecture.",
    "prompts.wordings.",
    "hydra.",
)  # any name may stand
HYDRA_KEYS = ("defaults", "hydra")


@cache
def groups() -> list[str]:
    """The groups of conf/, by name."""
    return sorted(path.name for path in CONF.iterdir() if path.is_dir())


@lru_cache
def options(group: str) -> dict[str, dict[str, Any]]:
    """Return option -> its keys as written in conf/<group>/<option>.yaml."""
    folder = CONF / group
    return {str(file.relative_to(folder).with_suffix("")): _read(str(file)) for file in sorted(folder.rglob("*.yaml"))}


@cache
def own_values(name: str) -> dict[str, Any]:
    """Return the keys of conf/<name>.yaml itself with their values as written."""
    return {key: value for key, value in _read(str(CONF / f"{name}.yaml")).items() if key not in HYDRA_KEYS}


@cache
def own_keys(name: str) -> tuple[str, ...]:
    """Return the keys and groups that conf/<name>.yaml itself states, beyond those of conf/encoder.yaml."""
    entries = _read(str(CONF / f"{name}.yaml")).get("defaults", ())
    return (*own_values(name), *(group for entry in entries if isinstance(entry, dict) for group in entry))


@cache
def _read(file: str) -> dict[str, Any]:
    return OmegaConf.to_container(OmegaConf.load(file), resolve=False) or {}  # type: ignore[return-value]


@contextmanager
def composer() -> Iterator[Callable[..., DictConfig]]:
    """Yield Hydra's `compose` on conf/, also from within a Hydra job, whose own state is put back afterwards."""
    state = GlobalHydra.instance()
    outer = state.hydra
    state.clear()
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            yield compose
    finally:
        state.hydra = outer


def composed(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """Compose conf/<name>.yaml with Hydra overrides, without running anything.

    Raises `UserError`, one line with the nearest valid names, for an unknown key, group or group member.
    """
    return _composed(name, overrides)[0]


def choices_of(name: str, overrides: Sequence[str] = ()) -> dict[str, str | None]:
    """Return the option that a command line chooses of each group: {"model": "tiny", "design": None, ...}."""
    return _composed(name, overrides)[1]


def _composed(name: str, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, str | None]]:
    _refuse_words(name, overrides)
    try:
        return pickle.loads(_pickled(name, tuple(overrides)))
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise UserError(_explained(error, name, overrides)) from error


@lru_cache(maxsize=256)  # a tenth of a second each; reading a pickle is six times as fast as a deep copy
def _pickled(name: str, overrides: tuple[str, ...]) -> bytes:
    with composer() as compose_:
        cfg = compose_(name, overrides=list(overrides), return_hydra_config=True)
    choices = dict(cfg.hydra.runtime.choices)
    OmegaConf.set_struct(cfg, False)
    del cfg["hydra"]
    OmegaConf.set_struct(cfg, True)
    return pickle.dumps((cfg, choices))


def _refuse_words(name: str, overrides: Sequence[str]) -> None:
    """Refuse what Hydra would take, and no program would read as it was meant. Raises `UserError`."""
    for word in overrides:
        key, _, value = word.lstrip("+").partition("=")
        if word.startswith("~") and key[1:] != "benchmark":
            raise UserError(f"{word} would delete a key that {name}.py needs. Write key=value.")
        if (
            word.startswith("+")
            and "@" not in key
            and key not in groups()
            and not key.startswith((*FREE, "data.sources."))
        ):
            raise UserError(f"{word} would add a key that nothing reads. Leave out the +, or see --help for the keys.")
        if key in groups() and value.startswith("["):
            raise UserError(f"{word} would merge options of {key}. Give one of them, or a run of each: -m {key}=a,b.")


def plain(cfg: DictConfig) -> dict:
    """Return the resolved config as plain dictionaries and lists. Raises `UserError` where a key cannot be computed."""
    try:
        return OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False)  # type: ignore[return-value]
    except InterpolationResolutionError as error:
        raise UserError(f"The configuration cannot be composed: {_first_line(error)}") from error


def flat(value: object, prefix: str = "") -> dict[str, object]:
    """Flatten nested dictionaries to dotted keys: {"lora": {"r": 16}} -> {"lora.r": 16}."""
    if not isinstance(value, dict) or (not value and prefix):
        return {prefix: value}
    return {k: v for key, sub in value.items() for k, v in flat(sub, f"{prefix}.{key}" if prefix else str(key)).items()}


def _explained(error: Exception, name: str, overrides: Sequence[str]) -> str:
    text = str(error)
    group = re.search(r"Could not find '(\w+)/([^']+)'", text)
    if group:
        folder, member = group.groups()
        return f"There is no {folder} '{member}' in conf/{folder}. {nearest(member, options(folder))}"
    key = re.search(r"Could not override '([^']+)'", text)
    if key and "not in struct" in text + str(error.__cause__):
        inner = re.search(r"full_key: (\S+)", str(error.__cause__))  # of {...}, the word that is unknown
        unknown = inner[1] if inner and inner[1].startswith(f"{key[1]}.") else key[1]
        owners = _owners(unknown)
        mend = f"It belongs to {', '.join(owners)}." if owners else nearest(unknown, _keys(name, overrides))
        return f"There is no key '{unknown}' in conf/{name}.yaml. {mend}"
    if key and "No match in the defaults list" in text:
        return f"There is no group '{key[1]}' in conf/. {nearest(key[1], groups())}"
    sweep = re.search(r"Ambiguous value for argument '([^=]+)=([^']*)", text)
    if sweep:
        return f"{sweep[1]} has several values. Write a list, {sweep[1]}=[{sweep[2]}], or -m for a run of each."
    return f"The configuration cannot be composed: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    parts = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(parts[:2]) if parts else type(error).__name__


def _owners(key: str) -> list[str]:
    """The members of a group that do have `key`: data.path belongs to data=jsonl and data=ir_data."""
    group, _, rest = key.partition(".")
    return [f"{group}={name}" for name, keys in options(group).items() if rest in flat(keys)] if group and rest else []


def _keys(name: str, overrides: Sequence[str]) -> set[str]:
    chosen = [word for word in overrides if word.partition("=")[0] in groups()]
    keys = flat(OmegaConf.to_container(composed(name, chosen), resolve=False))
    return {*keys, *(key.rsplit(".", 1)[0] for key in keys if "." in key)}
