"""The one check of values: each key has a limit, words, or the kind of value that conf/ gives it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isfinite
from typing import Any

from cli.compose import FREE, flat, groups, options, own_values
from cli.errors import UserError

SWITCH = (True, False)
TOKENS = ("all", "last", "mean")
PROGRAMS = ("train", "encoder", "evaluate", "representation", "mine", "specialise", "study")
NULL = type(None)
KINDS = {
    bool: "true or false",
    float: "a number",
    str: "a text, one of digits in quotes of its own: \"'5'\"",
    list: "a list",
    dict: "keys and values, such as {a: 1}",
    NULL: "null",
}
OWN_CHECK = ("objective.matryoshka", "objective.betas", "evaluation.dims", "adapter.experts")
OF_OTHERS = {"experiment", "design", "divergence", "stages"}  # groups that set keys of others


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


HEAD = {  # of the keys of head.* in conf/encoder.yaml, and of the poolers that have a head
    **dict.fromkeys(("num_queries", "num_latents", "num_heads"), Limit(1)),
    "head_dim": Limit(1, "hidden size / num_heads"),
    "of_width": Limit(1, "the sizes as they stand"),
    "mlp_factor": real(1e-6),
    **dict.fromkeys(("query_std", "layer_weights_std"), real(0)),
}
HEAD_WORDS = {"start": ("near_mean", "torch")}

# The keys of conf/encoder.yaml, which train.yaml and evaluate.yaml share; poolers and attention patterns state theirs.
ENCODER = {
    "seed": Limit(0),
    "text_length": Limit(4),
    "max_length": Limit(4),  # BOS, EOS and something between
    "token_budget": Limit(1),
    "evaluation.max_length_share": real(1e-6, largest=1),
    **{f"head.{key}": limit for key, limit in HEAD.items()},
}
ENCODER_WORDS = {
    "padding_side": ("right", "left"),
    "accelerator": ("auto", "cpu", "gpu", "cuda"),
    "precision": ("auto", "bf16", "mixed", "fp32"),
    **dict.fromkeys(("token_choice.lastlayer_tokens", "attn.tokens", "pooler.tokens"), TOKENS),
    "token_choice.routing_weights": ("softmax", "logits"),
    "token_choice.standardise": ("none", "corpus", "batch"),
    **{f"head.{key}": known for key, known in HEAD_WORDS.items()},
    "evaluation.autocast": (None, "fp16", "bf16", "fp32"),
    "evaluation.instructions": ("none", "table", "mteb"),
    "model.quantise": (None, "nf4"),
    "model.attn_implementation": ("auto", "unpadded", "sdpa", "eager", "flash_attention_2"),
}

# The keys of conf/data that are no files, texts or names, for all programs that read data.
DATA = {"data.negatives": Limit(1), "data.smallest": Limit(2), "data.shortest": Limit(0)}
DATA_WORDS = {"data.level": ("subpackage", "package")}


def check_limits(config: Any, limits: Mapping[str, Limit], words: Mapping[str, Collection[Any]]) -> None:
    """Refuse a value that is out of range, none of the known words, or of another kind than conf/ gives its key.

    config: the resolved configuration; a key that it has not is not looked at, since not every pooler has a head.
    words: key -> the known ones; a set of them: a list of any. Keys of a source of a mix are checked as those of data.
    Raises `UserError`, which names key, value and what may stand there. Whether numbers fit one another is for
    others to say.
    """
    for key, value in sorted(flat(config).items(), key=lambda item: item[0].startswith("pooler.")):
        name = of_source(key)
        limit = Limit(0) if name == "data.validation" and name != key else limits.get(name)
        if name in words:
            known = words[name]
            must = f"{'a list of any' if isinstance(known, set) else 'one'} of {', '.join(map(shown, known))}"
            must = "" if _is_among(value, known) else KINDS[bool] if known is SWITCH else must
        elif limit:
            must = "" if limit.allows(value) else str(limit)
        else:
            must = _of_another_kind(name, value)
        if must:
            raise UserError(f"{key}={shown(value)} must be {must}.")


def of_source(key: str) -> str:
    """Return the key of data= that a key of a source of data=mix is: data.sources.pairs.path -> data.path."""
    parts = key.split(".")
    return ".".join(["data", *parts[3:]]) if parts[:2] == ["data", "sources"] and len(parts) > 3 else key


def _is_among(value: Any, known: Collection[Any]) -> bool:
    if isinstance(known, set):
        return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v in known for v in value)
    return any(type(value) is type(word) and value == word for word in known)


def _of_another_kind(key: str, value: Any) -> str:
    """Return what a value must be, "" where it is of a kind that conf/ gives its key."""
    kinds = _kinds()
    if value == {} or key in OWN_CHECK or key.startswith(FREE) or (value is None and key in groups()):
        return ""
    below = next((other for other in kinds if other.startswith(f"{key}.")), "")
    holder = next((other for other in kinds if key.startswith(f"{other}.") and dict not in kinds[other]), "")
    if holder:
        return f"left out: {holder} is one value"
    if below and key not in kinds:
        return f"left out: it has keys of its own, such as {below}"
    allowed = kinds.get(key, {_kind(value)})
    if allowed == {NULL}:  # numbers that may be null have a limit, those of a pooler where its class is
        allowed = {NULL, str, list, dict, *([float] if key.startswith("pooler.") else [])}
    return "" if _kind(value) in allowed else " or ".join(what for kind, what in KINDS.items() if kind in allowed)


@cache
def _kinds() -> dict[str, set[type]]:
    """Return key -> the kinds of all values that conf/ gives it; `${a.b}` has those of a.b."""
    stated = [pair for name in PROGRAMS for pair in flat(own_values(name)).items()]
    for group in {*groups()} - OF_OTHERS:
        stated += [(f"{group}.{key}", value) for of in options(group).values() for key, value in flat(of).items()]
    kinds: dict[str, set[type]] = {}
    for key, value in stated:
        if not str(value).startswith(("${", "???")):
            kinds.setdefault(of_source(key), set()).add(_kind(value))
    for key, value in stated:
        of = kinds.get(str(value)[2:-1])
        if of and str(value).startswith("${"):
            kinds.setdefault(key, set()).update(of)
    return kinds


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def shown(value: Any) -> str:
    """Return a value for a message, as it is typed, in one line."""
    return "null" if value is None else " ".join(str(value).split())


def check_groups(config: Any, names: Sequence[str]) -> None:
    """Refuse `model=null` and the like, where something must be chosen. Raises `UserError`."""
    for group in names:
        if not config.get(group):
            raise UserError(f"{group}= is empty. Give one of {', '.join(options(group))}.")


def check_study(config: Any) -> None:
    """Refuse a `study` that is no text or blank, or that would be runs_dir or the folder above. Raises `UserError`."""
    study = config["study"]
    if not isinstance(study, str) or study.strip() in ("", ".", ".."):
        raise UserError(
            f"study={shown(study)} names no folder below runs_dir. Give study=<name>, one of digits alone in quotes of "
            "its own: \"'5'\"; or leave it out."
        )


def check_dims(key: str, dims: Any) -> None:
    """Refuse what is neither null nor a list of rising whole numbers of at least 2. Raises `UserError`."""
    if dims is None:
        return
    whole = isinstance(dims, list) and dims and all(isinstance(d, int) and not isinstance(d, bool) for d in dims)
    if not whole or dims != sorted(set(dims)) or dims[0] < 2:
        raise UserError(f"{key}={dims} must be rising whole numbers of at least 2, such as [64,128,256].")


def fit_width(key: str, dims: Sequence[int] | None, width: int) -> None:
    """Refuse a prefix that is longer than the vector. Raises `UserError`."""
    if dims and dims[-1] > width:
        raise UserError(f"{key}={list(dims)} goes beyond the {width} entries of a vector. Leave out what is more.")
