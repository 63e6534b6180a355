"""The mixtures of experts among the encoders, and the readings of them that the studies compare."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cli.errors import UserError
from encoders.backbone import load_config
from representation.encoders_studied import Studied, decoders

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
HS_AND_RW = {"HS": "moee:hidden", "RW": "moee:routing"}  # as published: last token, last layer, every router


def check_sizes(key: str, sizes: Any) -> None:
    """Raise `UserError` where `sizes` is no list of whole numbers of at least two."""
    if not isinstance(sizes, list) or not sizes or any(type(size) is not int or size < 2 for size in sizes):
        raise UserError(f"{key}={sizes} must be a list of whole numbers, at least 2 each: {key}=[8,32].")


def mixtures(encoders: Sequence[Studied]) -> list[Studied]:
    """Return those whose decoder is a mixture of experts, each decoder once, whatever its starts' heads."""
    return [
        replace(studied, label=decoder.label if len(decoder.seeds) == 1 else f"{decoder.label} seed={studied.seed}")
        for decoder in decoders(encoders)
        for studied in decoder.seeds
        if any(getattr(load_config(studied.config["model"]), key, None) for key in EXPERTS)
    ]
