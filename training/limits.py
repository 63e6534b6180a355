"""Values of the configuration that mean something: whole numbers, the smallest of each, where null stands, words."""

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
    "trainer.graph_tokens": (0, ""),
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
    "pooler.num_queries": (1, ""),
    "pooler.num_heads": (1, ""),
    "pooler.head_dim": (1, "hidden size / num_heads"),
    "pooler.match_params": (1, "as the sizes make it"),
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
WORDS = {
    "padding_side": ("right", "left"),
    "accelerator": ("auto", "cpu", "gpu", "cuda"),
}


def check_values(config: dict[str, Any]) -> None:
    """Refuse a word where a number belongs, a fraction where a whole one does, numbers below the smallest, odd words.

    config: the resolved configuration of a contrastive run. Raises `UserError`, which names key, value and what may
    stand there. Whether numbers fit one another is for others to say.
    """
    values = flat(config)
    for key, words in WORDS.items():
        if values[key] not in words:
            raise UserError(f"{key}={values[key]} must be one of {', '.join(words)}.")
    for key, (smallest, null) in {**WHOLE, **REAL}.items():
        value = values.get(key, smallest)  # not every pooler has a head
        if value is None and null:
            continue
        kinds = int if key in WHOLE else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value) or value < smallest:
            kind = "whole number" if key in WHOLE else "number"
            shown = "null" if value is None else value
            raise UserError(f"{key}={shown} must be a {kind}, at least {smallest}{f'; null: {null}' if null else ''}.")
