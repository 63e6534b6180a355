"""conf/ composed by Hydra; a misspelt key or group becomes one line with the nearest valid names."""

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import ConfigCompositionException, HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import get_yaml_loader
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from cli.errors import UserError, nearest
from cli.hydra_flags import read_flags
from cli.remarks import CONF

OmegaConf.register_new_resolver("twice", lambda number: 2 * number, replace=True)  # design=echo_long
# Below these any name may stand.
FREE = ("data.mix.", "model.architecture.", "launcher.more.")
OF_A_SOURCE = re.compile(r"^data\.sources\.[^.]+")  # what data= has, each source of data=mix has
RENAMED = {"cell": "design", "published": "design", "reading": "token_choice"}
# As OmegaConf reads YAML, by libyaml where it is there: all of conf/ in a ninth of the time.
LOADER = type("Loader", (yaml.CSafeLoader, get_yaml_loader()), {}) if yaml.__with_libyaml__ else get_yaml_loader()
SWEEP_PROBES = 32  # a sweep is checked value by value before its first run, up to this many


@lru_cache
def options(group: str) -> dict[str, dict[str, Any]]:
    """Return option -> its keys as written: those of conf/tables/<group>.yaml, or the files of conf/<group>."""
    table, folder = CONF / "tables" / f"{group}.yaml", CONF / group
    if table.is_file():
        return _read(table)
    return {str(file.relative_to(folder).with_suffix("")): _read(file) for file in sorted(folder.rglob("*.yaml"))}


def _read(file: Path) -> dict[str, Any]:
    return yaml.load(file.read_text(encoding="utf-8"), LOADER)


def _store_tables() -> None:
    """Make each key of conf/tables/<group>.yaml an option of the group, as each file of conf/<group> is one."""
    for table in (CONF / "tables").glob("*.yaml"):
        package = "_global_" if table.read_text(encoding="utf-8").startswith("# @package _global_") else None
        for name, keys in options(table.stem).items():
            ConfigStore.instance().store(name, keys, table.stem, package)


_store_tables()


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
    _refuse_merges(overrides)
    try:
        cfg = pickle.loads(_composed(name, tuple(overrides)))
        _refuse_added(name, overrides, cfg)
        return cfg
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_explained(error, name, overrides)) from error
    except ValueError as error:  # Hydra's own words name no group
        empty = next((word for word in overrides if _chooses_nothing(word)), None)
        if empty is None:
            raise
        group = empty.partition("=")[0]
        raise UserError(f"{empty} chooses no option of {group}. Give one of {', '.join(options(group))}.") from error


def _refuse_merges(overrides: Sequence[str]) -> None:
    """Refuse a list of a group's options, which Hydra would merge into one. Raises `UserError`."""
    for word in overrides:
        group, _, value = word.lstrip("+").partition("=")
        if value.startswith("[") and group in groups():
            names = ",".join(name.strip(" '\"") for name in value.strip("[]").split(","))
            raise UserError(
                f"{word} would merge options of {group}. Give one of them, or a run of each: -m {group}={names}."
            )


def _refuse_added(name: str, overrides: Sequence[str], cfg: DictConfig) -> None:
    """Refuse what `+key=` adds to `cfg` where no file of the program and no option has the key. Raises `UserError`."""
    added = [word.lstrip("+").partition("=")[0] for word in overrides if word.startswith("+")]
    added = [f"{key}." for key in added if not re.search(r"^hydra[./]|@", key) and key not in groups()]
    if not added:
        return
    known = _stated(name)
    for key in flat(OmegaConf.to_container(cfg, resolve=False)):
        new = f"{key}.".startswith(tuple(added)) and not key.startswith(FREE)
        of_option = OF_A_SOURCE.sub("data", key)
        if new and of_option not in known:
            beside = {other for other in known if other.rpartition(".")[0] == of_option.rpartition(".")[0]} or known
            raise UserError(f"There is no key '{key}', so nothing would read what + adds. {nearest(of_option, beside)}")


@cache
def _stated(name: str) -> set[str]:
    """The keys of conf/<name>.yaml, of conf/encoder.yaml where that has it, of all options, and those above them."""
    entries = _read(CONF / f"{name}.yaml").get("defaults", ())
    keys = {key for file in [name, *["encoder"] * ("encoder" in entries)] for key in flat(own_values(file))}
    keys |= {f"{group}.{key}" for group in groups() for option in options(group).values() for key in flat(option)}
    return keys | {key[:end] for key in keys for end, letter in enumerate(key) if letter == "."}


def _chooses_nothing(word: str) -> bool:
    """Tell whether an override gives a group null, a number or a truth value in place of an option's name."""
    override = OverridesParser.create().parse_override(word)
    return override.key_or_group in groups() and not isinstance(override.value(), str | list) and "=" in word


@lru_cache(maxsize=256)  # a tenth of a second each; a run composes the same words for its folder and its checks
def _composed(name: str, overrides: tuple[str, ...]) -> bytes:
    """Pickled: reading that is six times as fast as a deep copy."""
    with composer() as compose_:
        return pickle.dumps(compose_(name, overrides=list(overrides)))


def check_overrides(name: str, arguments: Sequence[str]) -> list[str]:
    """Compose once for every value that the command line asks for, so that a sweep fails before its first run.

    Returns the keys and groups that have several values.
    """
    flags = read_flags(arguments)
    words: list[str] = flags.overrides
    for word in words:
        if word.startswith(("~", "=")):
            what = "names no key" if word.startswith("=") else f"would delete a key that {name}.py needs"
            raise UserError(f"{word} {what}. Write key=value.")
    words = [*params_of_sweeps(words), *words]  # a word of the command line comes last, and counts
    try:
        parsed = OverridesParser.create().parse_overrides(words)
    except HydraException as error:
        raise UserError(
            f"An override cannot be read: {_first_line(error)} Write key=value, in quotes where the value has spaces."
        ) from error
    fixed, swept = [], {}
    for word, override in zip(words, parsed, strict=True):
        if override.is_sweep_override():
            swept[override.get_key_element()] = list(override.sweep_string_iterator())
        else:
            fixed.append(word)
    if swept and not flags.multirun and not any(w.startswith("sweep=") for w in words):
        raise UserError(f"{', '.join(swept)} has several values. Add -m to run them all: python {name}.py -m ...")
    first = [f"{key}={values[0]}" for key, values in swept.items()]
    composed(name, [*fixed, *first])
    probes = [[*fixed, *first, f"{key}={value}"] for key, values in swept.items() for value in values[1:]]
    for probe in probes[:SWEEP_PROBES]:
        composed(name, probe)
    return [key.lstrip("+") for key, values in swept.items() if len(values) > 1]


def params_of_sweeps(words: Sequence[str]) -> list[str]:
    """The axes of `sweep=<name>` as words: only with a cell of theirs does a key such as pooler.mlp exist."""
    names = [word.removeprefix("sweep=") for word in words if word.startswith("sweep=")]
    params = [options("sweep")[name]["hydra"]["sweeper"]["params"] for name in names if name in options("sweep")]
    return [f"{key}={value}" for axes in params for key, value in axes.items()]


@cache
def own_values(name: str) -> dict[str, Any]:
    """Return the keys of conf/<name>.yaml itself with their values as written."""
    return {key: value for key, value in _read(CONF / f"{name}.yaml").items() if key not in ("defaults", "hydra")}


@cache
def own_keys(name: str) -> tuple[str, ...]:
    """Return the keys and groups that conf/<name>.yaml itself states, beyond those of conf/encoder.yaml."""
    entries = _read(CONF / f"{name}.yaml").get("defaults", ())
    return (*own_values(name), *(group for entry in entries if isinstance(entry, dict) for group in entry))


def plain(cfg: DictConfig) -> dict:
    """Return the resolved config as plain dictionaries and lists. Raises `UserError` where a key that others are
    computed from has no keys left."""
    try:
        return OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False)  # type: ignore[return-value]
    except InterpolationResolutionError as error:
        lost = re.search(r"trying to access ([\w.]+)\.\w+: node `([\w.]+)` is not a container", str(error))
        if lost is None:
            raise UserError(f"The configuration cannot be composed: {_first_line(error)}") from error
        raise UserError(f"{lost[2]} has keys of its own, from which others are computed. Give these.") from error


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
        place = folder if (CONF / folder).is_dir() else f"tables/{folder}.yaml"
        return f"There is no {folder} '{member}' in conf/{place}. {nearest(member, options(folder))}"
    key = re.search(r"Could not override '([^']+)'", text)
    first = key.group(1).split(".")[0] if key else ""
    if key and first in RENAMED:
        return f"There is no '{first}' in conf/. It is called {RENAMED[first]}."
    if key and isinstance(error, ConfigCompositionException) and "not in struct" in text + str(error.__cause__):
        inner = re.search(r"full_key: (\S+)", str(error.__cause__))  # of {...}, the word that is unknown
        unknown = inner[1] if inner and inner[1].startswith(f"{key[1]}.") else key[1]
        owners = _owners(unknown)
        mend = f"It belongs to {', '.join(owners)}." if owners else nearest(unknown, _keys(name, overrides))
        return f"There is no key '{unknown}' in conf/{name}.yaml. {mend}"
    if key and "No match in the defaults list" in text:
        return f"There is no group '{key.group(1)}' in conf/. {nearest(key.group(1), groups())}"
    return f"The configuration cannot be composed: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    parts = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(parts[:2]) if parts else type(error).__name__


@cache
def groups() -> list[str]:
    """The groups of conf/, by name."""
    folders = [path.name for path in CONF.iterdir() if path.is_dir() and path.name != "tables"]
    return sorted([*folders, *(path.stem for path in (CONF / "tables").glob("*.yaml"))])


def _owners(key: str) -> list[str]:
    """The members of a group that do have `key`: data.path belongs to data=jsonl and data=ir_data."""
    group, _, rest = key.partition(".")
    return [f"{group}={name}" for name, keys in options(group).items() if rest in flat(keys)] if group and rest else []


def _keys(name: str, overrides: Sequence[str]) -> Iterable[str]:
    chosen = [o for o in overrides if o.partition("=")[0] in groups()]
    base = flat(OmegaConf.to_container(composed(name, chosen), resolve=False))
    parents = {key.rsplit(".", 1)[0] for key in base if "." in key}
    return {*base, *parents}
