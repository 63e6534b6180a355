"""Decoder layers by torch.compile: norms, rotary embedding, gates, residuals and LoRA's dropout in few passes.

One region serves all layers, for any number of tokens; attention stays outside it, PEFT's own LoRA layers inside.
"""

from importlib.util import find_spec
from typing import Any

import torch
from transformers import AttentionInterface

from cli.errors import UserError
from encoders.attention.switch import parts
from encoders.attention.unpadded import UNPADDED, unpadded_attention

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "olmo2")  # states and gradients are eager code's, to 5e-6 in float32


def compile_layers(backbone: Any, wanted: str, usual: bool = True) -> None:
    """Compile the layers of `backbone` if `wanted`: always, never, or auto: where it can be, on a GPU with triton.

    They are compiled when they first run, with LoRA that is added before. usual: no mixture of experts, and no layer
    runs again in the backward pass. Raises `UserError` for always where it cannot be.
    """
    plain = backbone.config.model_type in FAMILIES and backbone.config._attn_implementation == UNPADDED
    can = plain and usual and getattr(backbone, "hf_quantizer", None) is None
    if wanted == "always" and not can:
        raise UserError(
            f"compile=always is made for dense decoders ({', '.join(FAMILIES)}) with attn_implementation=unpadded, "
            "without model.quantise, adapter=mixse and trainer.gradient_checkpointing. Give compile=auto or never."
        )
    on_gpu = next(backbone.parameters()).is_cuda and find_spec("triton") is not None
    if not can or wanted == "never" or (wanted == "auto" and not on_gpu):
        return
    torch.compiler.reset()  # what earlier encoders compiled counts to a limit, beyond which layers run eagerly
    AttentionInterface.register(UNPADDED, torch.compiler.disable(unpadded_attention))
    for layer in parts(backbone)[0]:
        layer.forward = torch.compile(layer.forward, dynamic=True)


def elementwise(backbone: Any) -> str:
    """Return what computes all that is no product, for manifests and caches: torch's operators, or compiled code."""
    return "torch.compile" if any("forward" in vars(layer) for layer in parts(backbone)[0]) else "torch"
