"""Numbers and words of a configuration: the smallest and largest of each, where null stands, which words there are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

from cli.compose import OF_A_SOURCE, flat, options
from cli.errors import UserError
from cli.kinds import check_kinds, shown


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


SWITCH = (True, False)
TOKENS = ("all", "last", "mean")

HEAD = {  # of the keys of conf/tables/head.yaml, and of the poolers that have a head
    **dict.fromkeys(("num_queries", "num_latents", "num_heads"), Limit(1)),
    "head_dim": Limit(1, "hidden size / num_heads"),
    "of_width": Limit(1, "the sizes as they stand"),
    "mlp_factor": real(1e-6),
    **dict.fromkeys(("query_std", "layer_weights_std"), real(0)),
}
HEAD_WORDS = {"start": ("near_mean", "torch"), "mlp": SWITCH, "residual": SWITCH}

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
    **dict.fromkeys(("tf32", "deterministic", "backbone.frozen", "pooler.trainable"), SWITCH),
    **{f"trainer.{key}": SWITCH for key in ("gradcache", "gradient_checkpointing", "sync_gradients", "shard_base")},
    **dict.fromkeys(("token_choice.last_real", "token_choice.pool_eos", "token_choice.mask_padding"), SWITCH),
    **dict.fromkeys(("evaluation.glued", "token_choice.pool_bos"), SWITCH),
    "token_choice.lastlayer_tokens": TOKENS,
    "token_choice.routing_weights": ("softmax", "logits"),
    "token_choice.standardise": ("none", "corpus", "batch"),
    "attn.tokens": TOKENS,
    "attn.lastlayer_tokens_in_code": TOKENS,
    "pooler.tokens": TOKENS,
    **dict.fromkeys(("pooler.pool_bos", "pooler.pool_eos", "pooler.pool_instruction"), SWITCH),
    **dict.fromkeys(("pooler.normalize", "pooler.last_real", "pooler.mask_padding", "template.eos"), SWITCH),
    **{f"head.{key}": known for key, known in HEAD_WORDS.items()},
    "evaluation.autocast": (None, "fp16", "bf16", "fp32"),
    "evaluation.instructions": ("none", "table", "mteb"),
    "model.quantise": (None, "nf4"),
    "model.attn_implementation": ("auto", "unpadded", "sdpa", "eager", "flash_attention_2"),
    **dict.fromkeys(("model.sliding_window", "model.trust_remote_code"), SWITCH),
}

# The keys of conf/data that are no files, texts or names, for all programs that read data.
DATA = {"data.negatives": Limit(1), "data.smallest": Limit(2), "data.shortest": Limit(0)}
DATA_WORDS = {"data.one_source": SWITCH, "data.level": ("subpackage", "package")}

# The keys of conf/tables/launcher.yaml.
LAUNCHER = {
    "launcher.jobs": Limit(-1),
    **{f"launcher.{key}": Limit(1) for key in ("minutes", "cpus", "at_once")},
    "launcher.gpus": Limit(0, "one per process"),
    "launcher.memory": Limit(1, "what the partition gives"),
}
LAUNCHER_WORDS = {"launcher.name": tuple(options("launcher"))}


def check_limits(config: Any, limits: Mapping[str, Limit], words: Mapping[str, Collection[Any]]) -> None:
    """Refuse a word where a number belongs, a fraction where a whole one does, what is out of range, odd words, and
    at all other keys what is of another kind than in conf/ (cli/kinds.py).

    config: the resolved configuration; a key that it has not is not looked at, since not every pooler has a head.
    words: key -> the known ones; a set of them: a list of any.
    Raises `UserError`, which names key, value and what may stand there. Whether numbers fit one another is for
    others to say.
    """
    values = flat(config)
    of_sources = {key: OF_A_SOURCE.sub("data", key) for key in values if OF_A_SOURCE.match(key)}
    words = {**words, **{key: words[name] for key, name in of_sources.items() if name in words}}
    of_source = {**DATA, "data.validation": Limit(0)}  # a source of a mix may keep nothing out of training
    limits = {**limits, **{key: of_source[name] for key, name in of_sources.items() if name in of_source}}
    for key, known in words.items():
        if key in values and not _is_among(values[key], known):
            named = f"{'a list of any' if isinstance(known, set) else 'one'} of {', '.join(map(shown, known))}"
            raise UserError(f"{key}={shown(values[key])} must be {'true or false' if known is SWITCH else named}.")
    for key, limit in limits.items():
        if key in values and not limit.allows(values[key]):
            raise UserError(f"{key}={shown(values[key])} must be {limit}.")
    check_kinds(config, {*words, *limits})


def _is_among(value: Any, known: Collection[Any]) -> bool:
    if isinstance(known, set):
        return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v in known for v in value)
    return any(type(value) is type(word) and value == word for word in known)


def check_groups(config: Any, groups: Sequence[str]) -> None:
    """Refuse `model=null` and the like, where something must be chosen. Raises `UserError`."""
    for group in groups:
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
    """Refuse what is no list of rising whole numbers of at least 2. Raises `UserError`."""
    whole = isinstance(dims, list) and dims and all(isinstance(d, int) and not isinstance(d, bool) for d in dims)
    if not whole or dims != sorted(set(dims)) or dims[0] < 2:
        raise UserError(f"{key}={dims} must be rising whole numbers of at least 2, such as [64,128,256].")


def check_prefixes(config: Any) -> None:
    """Refuse an `evaluation.dims` that `check_dims` refuses. Raises `UserError`."""
    if config["evaluation"]["dims"] is not None:
        check_dims("evaluation.dims", config["evaluation"]["dims"])


def fit_width(key: str, dims: Sequence[int] | None, width: int) -> None:
    """Refuse a prefix that is longer than the vector. Raises `UserError`."""
    if dims and dims[-1] > width:
        raise UserError(f"{key}={list(dims)} goes beyond the {width} entries of a vector. Leave out what is more.")
