"""The check of values: numbers within limits, and known words, as the module that reads a key states them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

from cli.compose import flat
from cli.errors import UserError


@dataclass(frozen=True)
class Limit:
    """The allowed values of a key. null: meaning of null; "" forbids it."""

    smallest: float
    null: str = ""
    whole: bool = True
    largest: float = inf
    below: float = inf  # the largest is not reached
    each: bool = False  # of a list of numbers

    def allows(self, value: Any) -> bool:
        """Return whether `value` is allowed."""
        if self.each:
            return isinstance(value, list) and bool(value) and all(map(replace(self, each=False).allows, value))
        kinds = int if self.whole else (int, float)
        if value is None:
            return bool(self.null)
        if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value):
            return False
        return self.smallest <= value <= self.largest and value < self.below

    def __str__(self) -> str:
        what = "whole number" if self.whole else "number"
        text = f"{f'a list of {what}s, each' if self.each else f'a {what},'} at least {self.smallest:g}"
        text += f" and at most {self.largest:g}" if self.largest < inf else ""
        text += f" and below {self.below:g}" if self.below < inf else ""
        return text + (f"; null: {self.null}" if self.null else "")


def real(smallest: float, null: str = "", largest: float = inf, below: float = inf) -> Limit:
    """A limit that is not of whole numbers alone."""
    return Limit(smallest, null, False, largest, below)


DATA = {"data.negatives": Limit(1), "data.smallest": Limit(2), "data.shortest": Limit(0)}
DATA_WORDS = {"data.level": ("subpackage", "package")}


def check_limits(config: Any, limits: Mapping[str, Limit], words: Mapping[str, Collection[Any]]) -> None:
    """Refuse a number out of range and an unknown word. config: resolved; it may lack keys of `limits` and `words`.

    words: key -> the known ones. Whether numbers fit one another is for others to say. Raises `UserError`.
    """
    for key, value in flat(config).items():
        must = ""
        if key in words and not any(type(value) is type(word) and value == word for word in words[key]):
            must = f"one of {', '.join(map(_typed, words[key]))}"
        elif key in limits and not limits[key].allows(value):
            must = str(limits[key])
        if must:
            raise UserError(f"{key}={_typed(value)} must be {must}.")


def _typed(value: Any) -> str:
    return "null" if value is None else str(value)


def check_dims(key: str, dims: Any, width: float = inf) -> None:
    """Refuse what is neither null nor a list of rising whole numbers from 2 to `width`. Raises `UserError`."""
    if dims is None:
        return
    if not Limit(2, each=True).allows(dims) or dims != sorted(set(dims)):
        raise UserError(f"{key}={dims} must be rising whole numbers of at least 2, such as [64,128,256].")
    if dims[-1] > width:
        raise UserError(f"{key}={dims} goes beyond the {width} entries of a vector. Leave out what is more.")
