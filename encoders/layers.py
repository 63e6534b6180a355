"""A decoder's layers and its final norm, found by what they are: families name them differently."""

from typing import Any

import torch
from transformers import PreTrainedModel

from cli.errors import UserError


def parts(backbone: PreTrainedModel) -> tuple[list[torch.nn.Module], torch.nn.Module]:
    """Return the decoder layers and the final norm.

    They are the one list of as many modules as there are layers, and the last norm beside it. The probe of attention
    proves that states pass through them in this order. Raises `UserError` for what is no such decoder.
    """
    inner: Any = backbone.get_decoder()
    count = backbone.config.get_text_config().num_hidden_layers
    children = list(inner.children())
    lists = [m for m in children if isinstance(m, torch.nn.ModuleList) and len(m) == count]
    norms = [m for m in children if "Norm" in type(m).__name__]
    if len(lists) != 1 or not norms or backbone.config.is_encoder_decoder:
        raise UserError(
            f"{type(backbone).__name__} is no decoder of {count} layers in a row with a norm after the last. "
            "Give a base of another family, such as Llama, Qwen, Mistral, Gemma, GPT-2 or Phi."
        )
    return list(lists[0]), norms[-1]
