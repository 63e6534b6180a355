"""The kind of value that each key of conf/ has: another is refused, so that a new key is checked by being there."""

from collections.abc import Collection, Mapping
from functools import cache
from math import isfinite
from typing import Any

from cli.compose import FREE, OF_A_SOURCE, flat, groups, options, own_values
from cli.errors import UserError

KINDS = {  # as `kind_of` names them -> as a message does
    "switch": "true or false",
    "number": "a number",
    "text": "a text (of digits alone, in quotes of its own: \"'5'\")",
    "texts": "a list of texts, such as [a,b]",
    "numbers": "a list of numbers, such as [1,2]",
    "mapping": "keys and values, such as {a: 1}",
    "null": "null",
}
PROGRAMS = ("train", "encoder", "evaluate", "representation", "mine", "specialise", "study")
OWN_CHECK = ("seeds", "designs", "objective.matryoshka", "evaluation.dims")  # and a better message
MAY_BE_EMPTY = ("data.packages", "data.development")
# Keys that are null in conf/, or computed: what else may stand there. Those with limits or words need no row.
WHERE_NULL = {
    **dict.fromkeys(("data.instruction", "data.revision", "logging.wandb", "pooler.statistics"), "text"),
    **dict.fromkeys(("objective.mask_token", "tasks_dir", "foreign", "results", "out"), "text"),
    "word_level.conll": "text",
    **dict.fromkeys((f"launcher.{key}" for key in ("partition", "account", "qos", "constraint")), "text"),
    **dict.fromkeys(("generator", "source", "task"), "text"),
    **dict.fromkeys(("axes", "lora.start", "objective.domains", "lora.targets", "benchmark.tasks"), "texts"),
    "launcher.setup": "texts",
    "lora.weights": "numbers",
    **dict.fromkeys(("run", "readings", "tasks", "questions", "data.path"), "text or texts"),
    "lineage": "texts or null",
    "adapter.experts": "texts or number",
    "launcher.more": "mapping",
    "max_length": "number",
}


@cache
def kinds() -> dict[str, set[str]]:
    """Return key -> the kinds of all values that conf/ and `WHERE_NULL` give it; a key may belong to any program."""
    stated = [pair for name in PROGRAMS for pair in flat(own_values(name)).items()]
    for group in {*groups()} - {"experiment"}:  # which states no key of its own
        stated += [(f"{group}.{key}", value) for of in options(group).values() for key, value in flat(of).items()]
    values: dict[str, list[Any]] = {}
    for key, value in stated:
        for name in {key, OF_A_SOURCE.sub("data", key)}:
            values.setdefault(name, []).append(value)
    by_key = {key: {kind for value in of for kind in _kinds_of(value, values)} for key, of in values.items()}
    for key, further in WHERE_NULL.items():
        by_key.setdefault(key, set()).update(further.split(" or "))
    return {key: of for key, of in by_key.items() if of}


def _kinds_of(value: Any, values: Mapping[str, list[Any]]) -> set[str]:
    """Kinds of one value as written: `${a.b}` has those of a.b, what is computed has none."""
    if isinstance(value, str) and value.startswith("${"):
        return {kind for other in values.get(value[2:-1], ()) for kind in _kinds_of(other, values)}
    return set() if value == "???" else {kind_of(value)}


def kind_of(value: Any) -> str:
    """Return the kind of a value, one of `KINDS`, or "mixed" for a list of several kinds."""
    if isinstance(value, list):
        inner = {kind_of(item) for item in value}
        return {"text": "texts", "number": "numbers"}.get(min(inner), "mixed") if len(inner) == 1 else "mixed"
    if isinstance(value, float) and not isfinite(value):
        return "mixed"
    of = {bool: "switch", int: "number", float: "number", str: "text", type(None): "null"}
    return of.get(type(value), "mapping")


def check_kinds(config: Any, checked: Collection[str]) -> None:
    """Refuse values of another kind than conf/ has, keys below a value, and a value in the place of keys.

    checked: keys that have limits or words, which say more. What is nothing but null in conf/ passes, and so do free
    keys. Raises `UserError`.
    """
    known = kinds()
    for key, value in sorted(flat(config).items(), key=_by_source):
        name = OF_A_SOURCE.sub("data", key)
        if value == {} or name.startswith(FREE) or (value == [] and name in MAY_BE_EMPTY):
            continue
        for holder in _above(key):
            if holder in checked or OF_A_SOURCE.sub("data", holder) in known:
                inner = f"{key.removeprefix(holder)[1:]}: {shown(value)}"
                raise UserError(f"{holder}={{{inner}}} must be one value, without keys.")
        below = name not in known and next((other for other in known if other.startswith(f"{name}.")), None)
        if below and (value is not None or name not in groups()):
            raise UserError(f"{key}={shown(value)} has keys of its own, such as {below}. Give these.")
        allowed = known.get(name, set())
        if key not in checked and key not in OWN_CHECK and not allowed <= {"null"} and kind_of(value) not in allowed:
            ways = " or ".join(text for kind, text in KINDS.items() if kind in allowed)
            raise UserError(f"{key}={shown(value)} must be {ways}.")


def _by_source(item: tuple[str, Any]) -> tuple[bool, bool]:
    """Order: keys from which others are computed come first, so that the one that was given is named."""
    group = item[0].partition(".")[0]
    return group in groups(), group != "head"


def _above(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def shown(value: Any) -> str:
    """Return a value for a message, as it is typed, in one line."""
    return "null" if value is None else " ".join(str(value).split())
