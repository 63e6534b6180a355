"""From conf/pooler/<name>.yaml to the pooler in poolers/<name>.py; nothing but this package is ever imported."""

from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from poolers.base import Pooler
from records.errors import UserError, nearest

NOT_POOLERS = {"__init__", "base", "packed", "registry", "cross_attention", "head_size"}
OUTSIDE = {"name", "normalize", "trainable"}  # keys of the YAML that are not the pooler's own


def pooler_names() -> list[str]:
    """Return the names of all poolers, sorted."""
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in NOT_POOLERS)


def build_pooler(config: dict[str, Any], hidden_size: int, num_layers: int, seed: int) -> Pooler:
    """Build the pooler of `config`, its parameters drawn from a random stream of its own.

    Raises `UserError` for an unknown name or for settings that the pooler refuses.
    """
    name = config["name"]
    if name not in pooler_names():
        raise UserError(f"There is no pooler '{name}'. {nearest(name, pooler_names())}")
    module = import_module(f"poolers.{name}")
    (cls,) = [
        v
        for v in vars(module).values()
        if isinstance(v, type) and issubclass(v, Pooler) and v.__module__ == module.__name__
    ]
    settings = {k: v for k, v in config.items() if k not in OUTSIDE}
    if settings.get("tokens", "all") not in ("last", "mean", "all"):
        raise UserError(f"pooler.tokens is '{settings['tokens']}'; it must be last, mean or all.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return cls(hidden_size, num_layers, **settings).requires_grad_(config.get("trainable", True))
        except TypeError as error:
            raise UserError(f"The pooler '{name}' cannot be built from its settings: {error}.") from error
