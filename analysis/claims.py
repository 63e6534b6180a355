"""The list of claims that `claims=` names: sentences on two designs each, checked before any score is read."""

from pathlib import Path
from typing import NamedTuple

from cli.errors import UserError, nearest, reading

AHEAD, LEVEL = KINDS = ("ahead", "level")
NEEDED = ("claim", "ahead", "behind")
FORM = "Write a list of {claim: <sentence>, ahead: <design>, behind: <design>}."


class Claim(NamedTuple):
    """One sentence and the pair of designs that it is about, by the names that the tables give them.

    `kind`: ahead, or level, which takes equivalence; `type`: the type of task, "" for all tasks compared;
    `published`: the difference as published, ahead minus behind, between -1 and 1.
    """

    claim: str
    ahead: str
    behind: str
    kind: str = AHEAD
    type: str = ""
    published: float | None = None


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Return the claims of a YAML list. Raises UserError with file and entry for what is no claim."""
    import yaml  # --help needs none of it
    from omegaconf._utils import get_yaml_loader  # a safe one, which refuses a key that is there twice

    with reading(path, FORM):
        entries = yaml.load(path.read_text(encoding="utf-8"), get_yaml_loader())
    if not isinstance(entries, list) or not entries:
        raise UserError(f"claims={path} is no list of claims. {FORM}")
    return tuple(_claim(entry, f"{path}, claim {place}") for place, entry in enumerate(entries, 1))


def _claim(entry: object, where: str) -> Claim:
    if not isinstance(entry, dict) or not entry.keys() >= set(NEEDED):
        raise UserError(f"{where} has not all of {', '.join(NEEDED)}. {FORM}")
    for key, value in entry.items():
        if key not in Claim._fields:
            raise UserError(f"{where}: there is no key {key!r}. {nearest(str(key), Claim._fields)}")
        if key != "published" and (not isinstance(value, str) or not value):
            raise UserError(f"{where}: {key}: {value!r} is no text. Put it into quotes.")
    claim = Claim(**entry)
    if claim.kind not in KINDS:
        raise UserError(f"{where}: kind: {claim.kind} is not known. {nearest(claim.kind, KINDS)}")
    size = claim.published
    if size is not None and (type(size) not in (int, float) or not 0 < abs(size) <= 1):
        raise UserError(f"{where}: published: {size!r} is no difference of two scores. Write 0.0129 or -0.0129.")
    return claim
