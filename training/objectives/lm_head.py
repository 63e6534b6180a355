"""The base's own language-model head, which `load_backbone` leaves behind: from hidden states to token logits."""

from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from cli.errors import UserError
from encoders.backbone import model_path
from encoders.checkpoint import tensor_files

SCALED = ("final_logit_softcapping", "logit_scale", "logits_scaling")  # logits that are more than a product


def lm_head(backbone: PreTrainedModel, model: dict[str, Any]) -> Tensor:
    """Return the frozen weight [V, D] of the head, in the format and on the device of `backbone`.

    It is read, alone, from the safetensors files of `model.path`; where they have none and the configuration ties it,
    it is the decoder's own input embeddings. Raises `UserError` where the base has none, and for a family whose logits
    are more than a product with it.
    """
    config = backbone.config.get_text_config()
    scaled = [key for key in SCALED if getattr(config, key, None) not in (None, 1.0)]
    if scaled:
        raise UserError(f"The logits of {config.model_type} are changed by {scaled[0]}, which is not known here.")
    path, embeddings = model["path"], backbone.get_input_embeddings().weight
    assert isinstance(embeddings, Tensor)
    name, files = _output_layer(config), tensor_files(str(model_path(path)))
    heads = [key for key in files if f".{key}".endswith(f".{name}.weight")]
    if not heads and config.tie_word_embeddings:
        return embeddings.detach()
    if len(heads) != 1:
        raise UserError(
            f"{path} has no language-model head ({name}.weight), which is needed here. "
            "Save it with AutoModelForCausalLM, or name a base that has one."
        )
    if heads[0].removesuffix("weight") + "bias" in files:
        raise UserError(f"The logits of {path} have a bias ({name}.bias), which is not known here.")
    with safe_open(files[heads[0]], "pt") as tensors:
        weight: Tensor = tensors.get_tensor(heads[0])
    return weight.to(backbone.device, backbone.dtype)


def _output_layer(config: Any) -> str:
    """The name of the head in the family's model for causal language modelling; the usual one where it has none."""
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except ValueError:  # the language model of a multimodal family, whose head is apart
        return "lm_head"
    head = model.get_output_embeddings()
    return next(name for name, module in model.named_modules() if module is head)


def logits_at(states: Tensor, head: Tensor) -> Tensor:
    """[M, V] float32 logits of states [M, D]; the product is in the format of autocast, or of the head."""
    kind = states.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else head.dtype
    return torch.nn.functional.linear(states.to(dtype), head.to(dtype)).float()
