"""Numbers of the configuration that mean something: which are whole, the smallest of each, and where null stands."""

from math import isfinite
from typing import Any

from records.config import flat
from records.errors import UserError

# key: (smallest, what null means, or "" where a number is needed)
WHOLE = {
    "seed": (0, ""),
    "max_length": (1, ""),
    "token_budget": (1, ""),
    "trainer.max_steps": (0, ""),
    "trainer.global_batch_size": (1, ""),
    "trainer.chunk_size": (1, "token_budget alone"),
    "trainer.checkpoint_every": (0, ""),
    "trainer.validate_every": (0, ""),
    "trainer.devices": (1, ""),
    "trainer.threads": (1, "one for each core"),
    "objective.hard_negatives": (0, "all that a query has"),
    "objective.loss_queries": (2, "the whole batch"),
    "objective.warmup": (0, ""),
    "lora.r": (1, ""),
    "data.validation": (1, ""),
}
REAL = {
    "trainer.gradient_clip": (0, "none"),
    "objective.temperature": (0, ""),
    "objective.lr": (0, ""),
    "objective.head_lr": (0, "objective.lr"),
    "objective.weight_decay": (0, ""),
    "lora.alpha": (0, ""),
    "lora.dropout": (0, ""),
}


def check_numbers(config: dict[str, Any]) -> None:
    """Refuse a word where a number belongs, a fraction where a whole one does, and numbers below the smallest.

    config: the resolved configuration of a contrastive run. Raises `UserError`, which names key, value and what may
    stand there. Whether numbers fit one another is for others to say.
    """
    values = flat(config)
    for key, (smallest, null) in {**WHOLE, **REAL}.items():
        value = values[key]
        if value is None and null:
            continue
        kinds = int if key in WHOLE else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value) or value < smallest:
            kind = "whole number" if key in WHOLE else "number"
            shown = "null" if value is None else value
            raise UserError(f"{key}={shown} must be a {kind}, at least {smallest}{f'; null: {null}' if null else ''}.")
