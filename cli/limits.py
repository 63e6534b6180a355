"""Numbers and words of a configuration: the smallest and largest of each, where null stands, which words there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

    def allows(self, value: Any) -> bool:
        """Return whether `value` is allowed."""
        kinds = int if self.whole else (int, float)
        if value is None:
            return bool(self.null)
        if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value):
            return False
        return self.smallest <= value <= self.largest and value < self.below

    def __str__(self) -> str:
        text = f"a {'whole number' if self.whole else 'number'}, at least {self.smallest:g}"
        text += f" and at most {self.largest:g}" if self.largest < inf else ""
        text += f" and below {self.below:g}" if self.below < inf else ""
        return text + (f"; null: {self.null}" if self.null else "")


def real(smallest: float, null: str = "", largest: float = inf, below: float = inf) -> Limit:
    """A limit that is not of whole numbers alone."""
    return Limit(smallest, null, False, largest, below)


SWITCH = (True, False)

# The keys of conf/encoder.yaml, which train.yaml and evaluate.yaml share; poolers and attention patterns state theirs.
ENCODER = {
    "seed": Limit(0),
    "max_length": Limit(4),  # BOS, EOS and something between
    "token_budget": Limit(1),
    "evaluation.max_length_share": real(1e-6, largest=1),
}
ENCODER_WORDS = {
    "padding_side": ("right", "left"),
    "accelerator": ("auto", "cpu", "gpu", "cuda"),
    "precision": ("auto", "bf16", "mixed", "fp32"),
    **dict.fromkeys(("tf32", "deterministic", "backbone.frozen", "pooler.trainable"), SWITCH),
    **dict.fromkeys(("trainer.gradcache", "trainer.gradient_checkpointing", "trainer.sync_gradients"), SWITCH),
    **dict.fromkeys(("token_choice.last_real", "token_choice.pool_eos", "token_choice.mask_padding"), SWITCH),
    **dict.fromkeys(("evaluation.glued", "token_choice.pool_bos"), SWITCH),
    **dict.fromkeys(("pooler.pool_bos", "pooler.pool_eos", "pooler.pool_instruction"), SWITCH),
}


def check_limits(config: Any, limits: Mapping[str, Limit], words: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a word where a number belongs, a fraction where a whole one does, what is out of range, odd words.

    config: the resolved configuration; a key that it has not is not looked at, since not every pooler has a head.
    Raises `UserError`, which names key, value and what may stand there. Whether numbers fit one another is for
    others to say.
    """
    values = flat(config)
    for key, known in words.items():
        if key in values and values[key] not in known:
            named = "true or false" if known is SWITCH else f"one of {', '.join(known)}"
            raise UserError(f"{key}={values[key]} must be {named}.")
    for key, limit in limits.items():
        if key in values and not limit.allows(values[key]):
            shown = "null" if values[key] is None else values[key]
            raise UserError(f"{key}={shown} must be {limit}.")


def check_dims(key: str, dims: Any) -> None:
    """Refuse what is no list of rising whole numbers of at least 2. Raises `UserError`."""
    whole = isinstance(dims, list) and dims and all(isinstance(d, int) and not isinstance(d, bool) for d in dims)
    if not whole or dims != sorted(set(dims)) or dims[0] < 2:
        raise UserError(f"{key}={dims} must be rising whole numbers of at least 2, such as [64,128,256].")


def fit_width(key: str, dims: Sequence[int] | None, width: int) -> None:
    """Refuse a prefix that is longer than the vector. Raises `UserError`."""
    if dims and dims[-1] > width:
        raise UserError(f"{key}={list(dims)} goes beyond the {width} entries of a vector. Leave out what is more.")
