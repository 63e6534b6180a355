"""The kernel that computes attention: `model.attn_implementation`, and what each decoder and pooler can have."""

from collections.abc import Iterable
from typing import Any

import torch
from transformers import MODEL_MAPPING, PreTrainedModel

from cli.errors import UserError
from encoders.attention.unpadded import UNPADDED
from poolers.shared.base import Pooler

# Families that run without any window. The others build a window's mask always, and in Gemma 3 the kind of a layer also
# decides its rotary base, so kinds must stay.
WINDOWLESS = ("mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
ROWS = (*WINDOWLESS, "llama", "olmo2", "olmoe", "qwen2_moe")  # tests/encoders/test_families.py
NO_PADDING = (
    "model.attn_implementation=unpadded has no states of padding, which the pooler reads with last_real=false or "
    "mask_padding=false. Give auto, sdpa or eager, or leave these keys at true."
)


def kernel_of(model: dict[str, Any], config: Any, padding: bool = False) -> str:
    """The attention kernel; "auto" takes what was measured to be fast on short texts (the result is the same).

    padding: whether a pooler reads states of padding, which a decoder has under a padded kernel alone. Raises
    `UserError` for `unpadded` where it cannot be had.
    """
    kernel = model["attn_implementation"]
    refuse_unpadded(model, padding)
    window = getattr(config, "sliding_window", None)  # texts share a row where attention is over all tokens of a text
    takes_rows = config.model_type in ROWS and (window is None or window > config.max_position_embeddings)
    if kernel == UNPADDED and not takes_rows:
        raise UserError(
            f"model.attn_implementation=unpadded is not made for {config.model_type} with a sliding window or another "
            "kind of attention than softmax over all tokens. Give sdpa or eager, or model.sliding_window=false."
        )
    if kernel != "auto":
        return kernel
    if takes_rows and not padding:
        return UNPADDED
    return "sdpa" if torch.cuda.is_available() and knows_sdpa(config) else "eager"


def refuse_unpadded(model: dict[str, Any], padding: bool) -> None:
    """Raise `UserError` where `model` asks for the kernel without padding, and a pooler reads states of padding."""
    if model["attn_implementation"] == UNPADDED and padding:
        raise UserError(NO_PADDING)


def knows_sdpa(config: Any) -> bool:
    """Return whether sdpa computes this family's attention; soft-capped scores (Gemma 2) and sinks (gpt-oss) it cannot.

    False for code that is not transformers' own: eager is the code itself.
    """
    return bool(getattr(MODEL_MAPPING.get(type(config), None), "_supports_sdpa", False))


def is_unpadded(backbone: PreTrainedModel) -> bool:
    """Return whether the decoder takes its texts as one row (`model.attn_implementation=unpadded`)."""
    return backbone.config._attn_implementation == UNPADDED


def check_padding(backbone: PreTrainedModel, poolers: Iterable[Pooler]) -> None:
    """Raise `UserError` where one of `poolers` reads states of padding and the decoder has none, so zeros."""
    if is_unpadded(backbone) and any(getattr(pooler, "reads_padding", False) for pooler in poolers):
        raise UserError(NO_PADDING)
