"""The base's own language-model head, which `load_backbone` leaves behind: from hidden states to token logits."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import cached_file

from encoders.backbone import model_path
from records.errors import UserError

NAME = "lm_head.weight"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
SCALED = ("final_logit_softcapping", "logit_scale", "logits_scaling")  # logits that are more than a product


def lm_head(backbone: PreTrainedModel, model: dict[str, Any]) -> Tensor:
    """Return the frozen weight [V, D] of the head, in the format and on the device of `backbone`.

    Tied: the decoder's own input embeddings. Else it is read, alone, from the safetensors files of `model.path`.
    Raises `UserError` where the base has none, and for a family whose logits are more than a product with it.
    """
    config = backbone.config.get_text_config()
    scaled = [key for key in SCALED if getattr(config, key, None) not in (None, 1.0)]
    if scaled:
        raise UserError(
            f"The logits of {config.model_type} are changed by {scaled[0]}, which objective=mntp does not know."
        )
    if config.tie_word_embeddings:
        weight = backbone.get_input_embeddings().weight
        assert isinstance(weight, Tensor)
        return weight.detach()
    path = _file(str(model_path(model["path"])))
    if path is not None:
        with safe_open(path, "pt") as tensors:
            if NAME in tensors.keys():  # noqa: SIM118  (it is no dictionary)
                return tensors.get_tensor(NAME).to(backbone.device, backbone.dtype)
    raise UserError(
        f"{model['path']} has no language-model head ({NAME}), which objective=mntp needs. "
        "Save it with AutoModelForCausalLM, or name a base that has one."
    )


def logits_at(states: Tensor, head: Tensor) -> Tensor:
    """[M, V] float32 logits of states [M, D]; the product is in the format of autocast, or of the head."""
    dtype = (
        torch.get_autocast_dtype(states.device.type) if torch.is_autocast_enabled(states.device.type) else head.dtype
    )
    return torch.nn.functional.linear(states.to(dtype), head.to(dtype)).float()


def _file(path: str) -> Path | None:
    """The safetensors file that holds the head, in a folder or in the hub's cache."""
    index = _found(path, INDEX)
    if index is None:
        return _found(path, SINGLE)
    name = json.loads(index.read_text())["weight_map"].get(NAME)
    return _found(path, name) if name else None


def _found(path: str, name: str) -> Path | None:
    if Path(path).is_dir():
        return Path(path) / name if (Path(path) / name).is_file() else None
    found = cached_file(path, name, _raise_exceptions_for_missing_entries=False)
    return Path(found) if found else None
