"""A base with its language-model head, which `load_backbone` leaves behind: from hidden states to token logits."""

from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from cli.errors import UserError, reading
from encoders.backbone import model_path

SCALED = ("final_logit_softcapping", "logit_scale", "logits_scaling")  # logits that are more than a product


def causal_model(model: dict[str, Any], dtype: torch.dtype) -> Any:
    """Return the whole model of `model.path` on the CPU. Raises `UserError` where it has no head."""
    path = model_path(model["path"])
    settings: dict[str, Any] = {"dtype": dtype, "use_safetensors": True, "output_loading_info": True}
    trusted = model["trust_remote_code"]
    with reading(path, "Name a base with a language-model head."):
        loaded: Any = AutoModelForCausalLM.from_pretrained(path, trust_remote_code=trusted, **settings)
    if loaded[1]["missing_keys"]:
        raise UserError(f"{path} has no language-model head, which is needed here. Name a base that has one.")
    return loaded[0]


def lm_head(backbone: PreTrainedModel, model: dict[str, Any]) -> Tensor:
    """Return the frozen weight [V, D] of the head, in the format and on the device of `backbone`.

    Raises `UserError` where the base has none, and for a family whose logits are more than a product with it.
    """
    config = backbone.config.get_text_config()
    scaled = [key for key in SCALED if getattr(config, key, None) not in (None, 1.0)]
    if scaled:
        raise UserError(f"The logits of {config.model_type} are changed by {scaled[0]}, which is not known here.")
    head = causal_model(model, backbone.dtype).get_output_embeddings()
    if head.bias is not None:
        raise UserError(f"The logits of {model['path']} have a bias, which is not known here.")
    weight: Tensor = head.weight.detach()
    return weight.to(backbone.device)


def logits_at(states: Tensor, head: Tensor) -> Tensor:
    """[M, V] float32 logits of states [M, D]; the product is in the format of autocast, or of the head."""
    kind = states.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else head.dtype
    return torch.nn.functional.linear(states.to(dtype), head.to(dtype)).float()
