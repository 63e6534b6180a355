"""The settings of one analysis, checked: every later step may trust them."""

from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

from analysis.grids.formats import Numbers
from cli.errors import UserError, nearest, reading

CHOICES = {
    "missing": ("auto", "fail", "drop_tasks", "drop_models", "intersection"),
    "correction": ("holm", "bh", "none"),
    "family": ("type", "table"),
    "zeros": ("wilcox", "pratt", "zsplit"),
    "scale": ("auto", "1", "100"),
    "layout": ("grid", "paper"),
    "unit": ("fraction", "percent"),
}
ALIASES = {"intersection": "drop_tasks"}  # its former name
LISTS = ("models", "seeds", "types", "tasks", "subsets", "factors", "allow", "published")
TEXTS = ("benchmark", "split", "revision", "against", "cluster", "items")
# Keys of a word or a path: the word, how to tell that the path is there, its kind, the remedy where it is not.
PLACES = {
    "items": ("none", Path.is_dir, "folder", "Name <results>/predictions, or write items=none."),
    "cluster": ("source", Path.is_file, "file", "Write cluster=source, or name a JSON {task: cluster}."),
}
NUMBERS = {
    "alpha": (float, 0.0, 1.0),
    "decimals": (int, 1, 16),
    "rope": (float, 0.0, 1.0),
    "delta": (float, 1e-6, 1.0),
    "rows_shown": (int, 0, 10**7),
    "digits": (int, 0, 12),
}
RENAMING = "Write rename='{eos-causal: Model 1}', or name a YAML file that holds such lines."
USUAL_DIGITS = {"fraction": 4, "percent": 2}  # where digits= names none


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
    claims: Path | None = None
    published: tuple[str, ...] = ()
    layout: str = "grid"
    unit: str = "fraction"
    digits: int = 4
    rename: dict[str, str] = field(default_factory=dict)
    report: bool = False
    figures: bool = False
    representation: Path | None = None
    factors: tuple[str, ...] = ("pooler", "attn")
    allow: tuple[str, ...] = ()
    order: dict[str, list[str]] = field(default_factory=dict)

    @property
    def numbers(self) -> Numbers:
        """The form in which every rendering prints scores and their differences."""
        return Numbers(self.unit == "percent", self.digits)


def public_path(path: Path) -> str:
    """Return a path as files for publication have it: as typed, or, where that names places of the machine, from the
    working folder on, and of a path elsewhere its last part alone."""
    if not path.is_absolute():
        return str(path)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def settings_from(values: dict[str, Any]) -> Settings:
    """Check the composed values and return them as `Settings`. Raises UserError with the mend in one line."""
    checked: dict[str, Any] = {key: _choice(key, values[key]) for key in CHOICES}
    checked["missing"] = ALIASES.get(checked["missing"], checked["missing"])
    checked |= {key: _names(key, values[key]) for key in LISTS}
    checked |= {key: _text(key, values[key]) for key in TEXTS}
    if checked["benchmark"] and (checked["split"] or checked["subsets"]):
        raise UserError("benchmark= fixes splits and subsets. Leave out split= and subsets=, or benchmark=.")
    checked |= {key: Path(_text(key, values[key])) if values[key] else None for key in ("out", "task_types", "claims")}
    for key, (word, is_there, kind, mend) in PLACES.items():
        if checked[key] not in ("", word) and not is_there(Path(checked[key])):
            raise UserError(f"{key}={checked[key]}: there is no such {kind}. {mend}")
    checked["scores"] = _scores("scores", values["scores"])
    numbers = {**values, "digits": USUAL_DIGITS[checked["unit"]] if values["digits"] is None else values["digits"]}
    checked |= {key: kind(_number(key, numbers[key], low, high)) for key, (kind, low, high) in NUMBERS.items()}
    checked["rename"] = _new_names(values["rename"])
    checked["report"] = _switch("report", values["report"])
    checked["figures"] = checked["report"] if values["figures"] is None else _switch("figures", values["figures"])
    checked["representation"] = _representation(values["representation"], checked["report"])
    if not isinstance(values["order"], dict):
        raise UserError("order= names factors and their values. Write order='{pooler: [mean, eos]}'.")
    checked["order"] = {factor: list(_names(f"order.{factor}", v)) for factor, v in values["order"].items()}
    return Settings(**checked)


def _new_names(value: Any) -> dict[str, str]:
    """Return name -> new name from a mapping, its text as YAML, or the path of a YAML file with it."""
    from yaml import safe_load

    pairs = {} if value is None else value
    if isinstance(value, str):
        with reading(f"rename={value}", RENAMING):
            pairs = safe_load(value if value.startswith("{") else Path(value).read_text(encoding="utf-8"))
    names = pairs.values() if isinstance(pairs, dict) else [None]
    if not all(isinstance(new, (str, int, float)) and str(new).strip() for new in names):
        raise UserError(f"rename={value} pairs no names of designs with new ones. {RENAMING}")
    return {str(name): " ".join(str(new).split()) for name, new in pairs.items()}


def _scores(key: str, value: Any) -> tuple[Path, ...]:
    if value in (None, "???", "", []):
        raise UserError("scores= is missing. Write python -m analysis scores=<results folder or csv>.")
    paths: list[Path] = []
    for name in _names(key, value):
        matches = [Path(name)] if Path(name).exists() else [Path(match) for match in sorted(glob(name))]
        if not matches:
            raise UserError(f"{key}={name}: there is no such file or folder. Give an mteb results folder or a csv.")
        paths += matches  # of a glob: 'runs/embedded*/scores' are the scores of several studies
    return tuple(paths)


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
    items = value if isinstance(value, list) else [value]
    odd = [item for item in items if type(item) not in (str, int)]
    if odd:
        raise UserError(f"{key}= holds {odd[0]}, which is no name. Write {key}=[a,b], a number as \"'0.5'\".")
    if not items or "" in items:
        raise UserError(f"{key}= is an empty list or holds an empty name. Leave it out to keep everything.")
    return tuple(map(str, items))


def _text(key: str, value: Any) -> str:
    if value is not None and type(value) not in (str, int):
        raise UserError(f"{key}={value} must be one text. Write {key}=<text>; a number in quotes of its own.")
    return "" if value is None else str(value)


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
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or (key == "alpha" and value in (low, high)):
        raise UserError(f"{key}={value} is out of range. Give a number between {low:g} and {high:g}.")
    if NUMBERS.get(key, (float,))[0] is int and value != int(value):
        raise UserError(f"{key}={value} is no whole number. Give one between {low:g} and {high:g}.")
    return float(value)
