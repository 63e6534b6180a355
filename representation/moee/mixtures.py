"""The mixtures of experts among the encoders, and the variants of them that the studies compare."""

from collections.abc import Sequence

from encoders.adapter import is_mixture, mixing_of
from encoders.backbone import load_config
from representation.encoders_studied import Studied, distinct_backbones

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
HS_AND_RW = {"HS": "moee:hidden", "RW": "moee:routing"}  # as published: last token, last layer, every router


def mixtures(encoders: Sequence[Studied]) -> list[Studied]:
    """Return those whose decoder is a mixture of experts, each decoder once, whatever its starts' heads."""
    return [studied for studied in distinct_backbones(encoders) if _is_moe(studied) or routes_experts(studied)]


def routes_experts(studied: Studied) -> bool:
    """Return whether it is a run that made a dense base a mixture (adapter=mixse), by a router that has a choice."""
    config = studied.config
    return studied.trained and not _is_moe(studied) and is_mixture(config) and mixing_of(config["adapter"]).chooses


def _is_moe(studied: Studied) -> bool:
    shape = load_config(studied.config["model"])
    return any(getattr(shape, key, None) for key in EXPERTS)
