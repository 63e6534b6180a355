"""Decoder layers by torch.compile: norms, rotary embedding, gates, residuals and LoRA's dropout in few passes.

One region serves all layers, for any number of tokens; attention stays outside it. PEFT's own layers are traced, and
dropout is drawn again in the backward pass from torch's generator. On a CPU it does not pay (docs/performance.md).
"""

from importlib.util import find_spec
from typing import Any

import torch
from transformers import AttentionInterface

from cli.errors import UserError
from encoders.attention.switch import parts
from encoders.attention.unpadded import UNPADDED, unpadded_attention

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "olmo2")  # tests/encoders/test_compiled.py


def compile_layers(backbone: Any, wanted: str, mixture: bool = False) -> None:
    """Compile the layers of `backbone` if `wanted`: always, never, or auto: where it can be, on a GPU with triton.

    They are compiled when they first run, LoRA that is added until then included. mixture: whether experts will be
    added. Raises `UserError` for always where it cannot be.
    """
    plain = backbone.config.model_type in FAMILIES and backbone.config._attn_implementation == UNPADDED
    can = plain and not mixture and getattr(backbone, "hf_quantizer", None) is None
    if wanted == "always" and not can:
        raise UserError(
            f"compile=always is made for dense decoders ({', '.join(FAMILIES)}) with attn_implementation=unpadded, not "
            "in four bits and without adapter=mixse. Give compile=auto or never."
        )
    on_gpu = next(backbone.parameters()).device.type == "cuda" and find_spec("triton") is not None
    if not (can and (wanted == "always" or (wanted == "auto" and on_gpu))):
        return
    AttentionInterface.register(UNPADDED, torch.compiler.disable(unpadded_attention))
    for layer in parts(backbone)[0]:
        layer.forward = torch.compile(layer.forward, dynamic=True)


def is_compiled(backbone: Any) -> bool:
    """Return whether `compile_layers` has compiled the layers of `backbone`."""
    return any("forward" in vars(layer) for layer in parts(backbone)[0])


def elementwise(backbone: Any) -> str:
    """Return what computes all that is no product, for manifests and caches: compiled code, or torch's operators."""
    return "torch.compile" if is_compiled(backbone) else "torch"
