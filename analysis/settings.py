"""The settings of one analysis, checked: every later step may trust them."""

from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

from cli.errors import UserError, nearest

CHOICES = {
    "missing": ("auto", "fail", "drop_tasks", "drop_models", "intersection"),
    "correction": ("holm", "bh", "none"),
    "family": ("type", "table"),
    "zeros": ("wilcox", "pratt", "zsplit"),
    "scale": ("auto", "1", "100"),
    "layout": ("grid", "paper"),
}
ALIASES = {"intersection": "drop_tasks"}  # its former name
LISTS = ("models", "seeds", "types", "tasks", "subsets", "factors", "allow")


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
    correction: str = "holm"
    family: str = "type"
    zeros: str = "wilcox"
    decimals: int = 12
    delta: float = 0.01
    scale: str = "auto"
    benchmark: str = ""
    split: str = ""
    subsets: tuple[str, ...] = ()
    revision: str = ""
    task_types: Path | None = None
    rows_shown: int = 45
    rope: float = 0.005
    cluster: str = ""
    items: str = ""
    layout: str = "grid"
    report: bool = False
    figures: bool = False
    representation: Path | None = None
    factors: tuple[str, ...] = ("pooler", "attn")
    allow: tuple[str, ...] = ()
    order: dict[str, list[str]] = field(default_factory=dict)


def settings_from(values: dict[str, Any]) -> Settings:
    """Check the composed values and return them as `Settings`. Raises UserError with the mend in one line."""
    checked: dict[str, Any] = {key: _choice(key, values[key]) for key in CHOICES}
    checked["missing"] = ALIASES.get(checked["missing"], checked["missing"])
    checked |= {key: _names(key, values[key]) for key in LISTS}
    checked |= {
        key: "" if values[key] is None else str(values[key]) for key in ("benchmark", "split", "revision", "against")
    }
    if checked["benchmark"] and (checked["split"] or checked["subsets"]):
        raise UserError("benchmark= fixes splits and subsets. Leave out split= and subsets=, or benchmark=.")
    checked |= {key: Path(str(values[key])) if values[key] else None for key in ("out", "task_types")}
    checked["items"] = _items(values["items"])
    checked["cluster"] = _cluster(values["cluster"])
    checked["scores"] = _scores(values["scores"])
    checked["alpha"] = _number("alpha", values["alpha"], low=0.0, high=1.0)
    checked["decimals"] = int(_number("decimals", values["decimals"], low=1, high=16))
    checked["rope"] = float(_number("rope", values["rope"], low=0.0, high=1.0))
    checked["delta"] = _number("delta", values["delta"], low=1e-6, high=1.0)
    checked["rows_shown"] = int(_number("rows_shown", values["rows_shown"], low=0, high=10**7))
    checked["report"] = _switch("report", values["report"])
    checked["figures"] = checked["report"] if values["figures"] is None else _switch("figures", values["figures"])
    checked["representation"] = _representation(values["representation"], checked["report"])
    checked["order"] = {factor: list(_names(f"order.{factor}", v)) for factor, v in values["order"].items()}
    return Settings(**checked)


def _scores(value: Any) -> tuple[Path, ...]:
    if value in (None, "???", "", []):
        raise UserError("scores= is missing. Write python -m analysis scores=<results folder or csv>.")
    return tuple(path for name in _names("scores", value) for path in _matches(name))


def _matches(name: str) -> list[Path]:
    """The path itself, or what a glob finds: 'runs/embedded*/scores' are the scores of several studies."""
    found = [Path(name)] if Path(name).exists() else [Path(match) for match in sorted(glob(name))]
    if not found:
        raise UserError(f"scores={name}: there is no such file or folder. Give an mteb results folder or a csv.")
    return found


def _cluster(value: Any) -> str:
    word = "" if value is None else str(value)
    if word not in ("", "source") and not Path(word).is_file():
        raise UserError(
            f"cluster={word}: there is no such file. Write cluster=source, or name a JSON {{task: cluster}}."
        )
    return word


def _items(value: Any) -> str:
    word = "" if value is None else str(value)
    if word not in ("", "none") and not Path(word).is_dir():
        raise UserError(f"items={word}: there is no such folder. Name <results>/predictions, or write items=none.")
    return word


def _representation(value: Any, report: bool) -> Path | None:
    if not value:
        return None
    folder = Path(str(value))
    if not report:
        raise UserError(f"representation={value} is shown in the report alone. Add report=true.")
    if not (folder / "answers.json").is_file():
        raise UserError(
            f"representation={value}: no answers.json is there. Name the folder that python -m representation wrote."
        )
    return folder


def _names(key: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, dict):
        raise UserError(f"{key}= is a list of names. Write {key}=[a,b].")
    items = [str(item) for item in (value if isinstance(value, list) else [value])]
    if not items or not all(items):
        raise UserError(f"{key}= is an empty list or holds an empty name. Leave it out to keep everything.")
    return tuple(items)


def _choice(key: str, value: Any) -> str:
    word = "none" if value is None else str(value)
    if word not in CHOICES[key]:
        raise UserError(f"{key}={word} is not known. {nearest(word, CHOICES[key])}")
    return word


def _switch(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UserError(f"{key}={value} is neither true nor false. Write {key}=true or {key}=false.")
    return value


def _number(key: str, value: Any, low: float, high: float) -> float:
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    outside = number is None or not low <= number <= high or (key == "alpha" and number in (low, high))
    if number is None or outside:
        raise UserError(f"{key}={value} is out of range. Give a number between {low:g} and {high:g}.")
    return number
