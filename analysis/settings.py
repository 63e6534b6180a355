"""The settings of one analysis: conf/analysis.yaml as a structured config, checked once; later steps may trust them."""

from dataclasses import dataclass, field, replace
from glob import glob
from pathlib import Path
from typing import Any

from analysis.formats import Unit
from cli.errors import UserError, nearest

LIST_KEYS = ("scores", "models", "seeds", "types", "tasks", "subsets", "factors", "allow", "tables")
ON_REQUEST = ("items", "overlap")  # what `tables=` may name


@dataclass(frozen=True)
class Settings:
    """The values of conf/analysis.yaml and the command line; each key is explained by its remark in that file."""

    scores: tuple[Path, ...]
    out: Path | None = None
    models: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    against: str = ""
    types: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    missing: str = "auto"
    alpha: float = 0.05
    benchmark: str = ""
    split: str = ""
    subsets: tuple[str, ...] = ()
    revision: str = ""
    rows_shown: int = 45
    rope: float = 0.01
    items: Path | None = None
    claims: Path | None = None
    tables: tuple[str, ...] = ()
    layout: str = "both"
    digits: int = 1
    report: bool = False
    figures: bool = False
    representation: Path | None = None
    factors: tuple[str, ...] = ("pooler", "attn")
    allow: tuple[str, ...] = ()
    order: dict[str, list[str]] = field(default_factory=dict)

    @property
    def numbers(self) -> Unit:
        """The form in which every rendering prints scores and their differences."""
        return Unit(self.digits)


def public_path(path: Path) -> str:
    """Return a path as files for publication have it: as typed, or, where that names places of the machine, from the
    working folder on, and of a path elsewhere its last part alone."""
    if not path.is_absolute():
        return str(path)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def settings_from(values: dict[str, Any]) -> Settings:
    """Return the composed values as `Settings`. Raises UserError with the mend in one line."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    _check_values(values)
    if values["out"] == "":
        raise UserError("out= is empty. Name a folder, or leave it out.")
    given = {key: value for key, value in values.items() if value is not None}
    given |= {key: [given[key]] for key in LIST_KEYS if key in given and not isinstance(given[key], list)}
    given["scores"] = _scores(given["scores"])
    given["figures"] = given.get("figures", values["report"])
    for key in (key for key in LIST_KEYS if key in given):
        if not given[key] or any(isinstance(item, list | dict) for item in given[key]):
            raise UserError(f"{key}= holds no names. Write {key}=[a,b].")
    schema = OmegaConf.structured(Settings)
    OmegaConf.set_readonly(schema, False)
    try:
        typed: Any = OmegaConf.to_object(OmegaConf.merge(schema, given))
    except OmegaConfBaseException as error:
        why = str(error).splitlines()[0]
        raise UserError(f"{error.full_key}= has a value of another kind: {why}. See --help.") from error
    lists: dict[str, Any] = {key: tuple(value) for key, value in vars(typed).items() if isinstance(value, list)}
    settings: Settings = replace(typed, **lists)
    _check_places(settings)
    return settings


def _check_values(values: dict[str, Any]) -> None:
    """Raise UserError for a number out of range and a word that is none of those known."""
    from cli.limits import Limit, check_limits, real

    limits = {
        "alpha": real(1e-6, below=1),
        "rope": real(0, largest=1),
        "rows_shown": Limit(0),
        "digits": Limit(0, largest=12),
    }
    words = {
        "missing": ("auto", "fail", "drop_tasks", "drop_models"),
        "layout": ("both", "wilcoxon"),
    }
    check_limits({key: values[key] for key in (*limits, *words)}, limits, words)
    further = [f"{key}=" for key in ("claims", "tables") if values[key]]
    if values["layout"] == "wilcoxon" and further:
        raise UserError(f"layout=wilcoxon prints one table alone. Leave out {' and '.join(further)}, or layout=.")
    if values["benchmark"] and (values["split"] or values["subsets"]):
        raise UserError("benchmark= fixes splits and subsets. Leave out split= and subsets=, or benchmark=.")


def _scores(names: list[Any]) -> list[Path]:
    """Return the paths that the words name; a glob such as 'runs/*/scores' stands for the scores of several studies."""
    if names in ([], ["???"], [""]):
        raise UserError("scores= is missing. Write python -m analysis scores=<results folder or csv>.")
    paths: list[Path] = []
    for name in map(str, names):
        matches = [Path(name)] if Path(name).exists() else [Path(match) for match in sorted(glob(name))]
        if not matches:
            raise UserError(f"scores={name}: there is no such file or folder. Give an mteb results folder or a csv.")
        paths += matches
    return paths


def _check_places(settings: Settings) -> None:
    """Raise UserError for a table that there is not, and for a file or folder that is named and not there."""
    for name in settings.tables:
        if name not in ON_REQUEST:
            raise UserError(f"tables= names {name!r}. {nearest(name, ON_REQUEST)} The others are always shown.")
    if settings.items and not settings.items.is_dir():
        raise UserError(f"items={settings.items}: there is no such folder. Name <results>/predictions.")
    folder = settings.representation
    if folder and not settings.report:
        raise UserError(f"representation={folder} is shown in the report alone. Add report=true.")
    if folder and not (folder / "sections.json").is_file():
        raise UserError(f"representation={folder} holds no sections.json. Name what python -m representation wrote.")
