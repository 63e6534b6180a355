"""The base in four bits (QLoRA, Dettmers et al. 2023, arXiv 2305.14314), by bitsandbytes where it is installed."""

from importlib.util import find_spec
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from cli.errors import UserError


def quantisation(model: dict[str, Any], compute: torch.dtype) -> Any:
    """Return transformers' configuration of `model.quantise`, None where the base is not quantised.

    Linear layers alone are; their products run in `compute`. Raises `UserError` where bitsandbytes is absent.
    """
    if not model.get("quantise"):
        return None
    if not find_spec("bitsandbytes"):
        raise UserError("model.quantise=nf4 needs the package bitsandbytes. Install it: pip install bitsandbytes.")
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=model["quantise"],
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=compute,
    )


def same_in_evaluation(backbone: nn.Module) -> None:
    """Keep bitsandbytes from packing weights for a CPU at the first pass without gradients.

    That rounds their scales to bf16, so what is trained would not be what is scored, and narrow layers fail.
    """
    module: Any  # a class of bitsandbytes
    for module in backbone.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def refuse_quantised(config: dict[str, Any], what: str) -> None:
    """Refuse to add trained weights to a base in four bits, which would round them away. Raises `UserError`."""
    if config["model"].get("quantise"):
        raise UserError(
            f"model.quantise={config['model']['quantise']} keeps the base in four bits, and {what} needs its weights. "
            "Give model.quantise=null."
        )


def count(parameter: Tensor) -> int:
    """Return the number of weights of a parameter, of one in four bits those that it stands for."""
    state = getattr(parameter, "quant_state", None)
    return parameter.numel() if state is None else prod(state.shape)
