"""LoRA by PEFT on the named linear layers, its start drawn from a random stream of its own."""

from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from cli.errors import UserError
from encoders.fast.dropout import use_quick_dropout
from encoders.fast.fused_lora import fuse_lora


def add_lora(backbone: PreTrainedModel, lora: dict[str, Any], seed: int, fused: bool = True) -> Any:
    """Wrap `backbone` in a PEFT model; base weights stay frozen, adapter weights are float32.

    lora: r, alpha, dropout, targets (names of linear layers). fused: compute by `encoders/fast/fused_lora.py`, or by
    PEFT. Returns the PEFT model; `backbone` is changed in place, so it can be called as before. Raises `UserError`
    where a target names no linear layer.
    """
    from peft import get_peft_model

    config = lora_config(backbone, lora)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        adapted = get_peft_model(backbone, config)
    if next(backbone.parameters()).device.type == "cpu":
        use_quick_dropout(backbone)
    if fused:
        fuse_lora(backbone)
    return adapted


def lora_config(backbone: PreTrainedModel, lora: dict[str, Any]) -> Any:
    """Return PEFT's configuration of `lora`. Raises `UserError` where a target names no linear layer."""
    from peft import LoraConfig

    linear = (torch.nn.Linear, Conv1D)  # GPT-2's layers of that name are linear ones with transposed weights
    names = {name.rsplit(".", 1)[-1] for name, m in backbone.named_modules() if isinstance(m, linear)}
    absent = set(lora["targets"]) - names
    if absent:
        raise UserError(f"lora.targets names {sorted(absent)}, not in this model. Its linear layers: {sorted(names)}.")
    transposed = any(isinstance(m, Conv1D) for m in backbone.modules())
    sizes = {"r": lora["r"], "lora_alpha": lora["alpha"], "lora_dropout": lora["dropout"]}
    return LoraConfig(**sizes, target_modules=list(lora["targets"]), fan_in_fan_out=transposed)
