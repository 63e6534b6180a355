"""The base's own language-model head, which `load_backbone` leaves behind: from hidden states to token logits."""

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import cached_file

from cli.errors import UserError
from encoders.backbone import model_path
from records.foreign_files import read_object

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
    name, files = _output_layer(config), _tensor_files(str(model_path(path)))
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


def _tensor_files(path: str) -> dict[str, Path]:
    """Return name -> safetensors file of every tensor, in a folder or in the hub's cache."""
    single = _file(path, "model.safetensors")
    if single is not None:
        with safe_open(single, "pt") as tensors:
            return dict.fromkeys(tensors.keys(), single)
    index = _file(path, "model.safetensors.index.json")
    names: dict[str, str] = read_object(index).get("weight_map") or {} if index else {}
    files = {name: _file(path, name) for name in set(names.values())}
    return {tensor: file for tensor, name in names.items() if (file := files[name]) is not None}


def _file(path: str, name: str) -> Path | None:
    if Path(path).is_dir():
        return Path(path) / name if (Path(path) / name).is_file() else None
    file = cached_file(path, name, _raise_exceptions_for_missing_entries=False)
    return Path(file) if file else None


def _output_layer(config: Any) -> str:
    """The name of the head in the family's model for causal language modelling."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    head = model.get_output_embeddings()
    return next(name for name, module in model.named_modules() if module is head)


def logits_at(states: Tensor, head: Tensor) -> Tensor:
    """[M, V] float32 logits of states [M, D]; the product is in the format of autocast, or of the head."""
    kind = states.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else head.dtype
    return torch.nn.functional.linear(states.to(dtype), head.to(dtype)).float()
