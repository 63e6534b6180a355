"""A checkpoint's tensors by name: which file holds each, which are the decoder's, and that none is missing or left."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import nn
from transformers import PreTrainedModel
from transformers.utils import cached_file

from cli.errors import UserError
from records.foreign_files import read_object

ANEW = "Save the whole model with save_pretrained(), or download it anew."
SHOWN = 3  # names in a message


def tensor_files(path: str) -> dict[str, Path]:
    """Return name -> safetensors file of every tensor, in a folder or in the hub's cache; the files transformers takes.

    A file that the index names and that is not there is left out.
    """
    single = _file(path, "model.safetensors")
    if single is not None:
        with safe_open(single, "pt") as tensors:
            return dict.fromkeys(tensors.keys(), single)
    index = _file(path, "model.safetensors.index.json")
    names: dict[str, str] = read_object(index, ANEW).get("weight_map") or {} if index else {}
    files = {name: _file(path, name) for name in set(names.values())}
    return {tensor: file for tensor, name in names.items() if (file := files[name]) is not None}


def _file(path: str, name: str) -> Path | None:
    if Path(path).is_dir():
        return Path(path) / name if (Path(path) / name).is_file() else None
    file = cached_file(path, name, _raise_exceptions_for_missing_entries=False)
    return Path(file) if file else None


def language_model_prefix(names: Iterable[str], decoder: PreTrainedModel) -> str:
    """Return what stands before the names of `decoder`'s tensors in the checkpoint of a model that it is one part of.

    It is read off the one tensor that every decoder has, its input embeddings; a name counts where the decoder's other
    parts stand next to it. "" where there is no such place, or more than one.
    """
    names = list(names)
    embeddings = decoder.get_input_embeddings()
    first = next(name for name, module in decoder.named_modules() if module is embeddings) + ".weight"
    places = {name.removesuffix(first) for name in names if name == first or name.endswith(f".{first}")}
    for child in {name.split(".")[0] for name in decoder.state_dict()}:
        places = {place for place in places if any(name.startswith(f"{place}{child}.") for name in names)}
    return places.pop() if len(places) == 1 else ""


def check_filled(decoder: PreTrainedModel, path: str, info: Mapping[str, Any], prefix: str) -> None:
    """Refuse a checkpoint that leaves tensors of `decoder` at random, or holds more of it than config.json describes.

    info: what transformers says of the loading. prefix: of the decoder's tensors in the checkpoint, where it was taken
    off. Other parts of a model, which lie next to the decoder and not inside its modules (a language-model head, a
    vision tower, heads that predict further tokens), are left in the file. Raises `UserError`.
    """
    if getattr(decoder, "_hf_peft_config_loaded", False):
        raise UserError(
            f"{path} holds an adapter beside its weights (adapter_config.json). Merge it (merge_and_unload) and save "
            "the model, or take the adapter out of the folder."
        )
    kind, left = type(decoder).__name__, list(info["unexpected_keys"])
    if missing := info["missing_keys"]:
        others = f" They hold {_some(left)} instead." if left else ""
        raise UserError(
            f"The weights of {path} lack {len(missing)} tensors of {kind}: {_some(missing)}.{others} {ANEW}"
        )
    shapes = [f"{name} {list(there)}, not {list(here)}" for name, there, here in info["mismatched_keys"]]
    children, usual = {name.split(".")[0] for name in decoder.state_dict()}, f"{decoder.base_model_prefix}."
    inside = [name for name in left if name.removeprefix(prefix or usual).split(".")[0] in children]
    for wrong, what in ((shapes, "have other shapes than"), (inside, "hold tensors without a place in")):
        if wrong:
            raise UserError(
                f"The weights of {path} {what} {kind} of its config.json: {_some(wrong)} ({len(wrong)} in all). "
                "Save weights and config.json together with save_pretrained()."
            )


def check_names(what: str, wanted: Iterable[str], names: Iterable[str], remedy: str) -> None:
    """Refuse a file whose tensors are not those that are `wanted`, by name. what: the file. Raises `UserError`."""
    wanted, names = set(wanted), set(names)
    for wrong, verb in ((wanted - names, "lacks"), (names - wanted, "holds unknown")):
        if wrong:
            raise UserError(f"{what} {verb} tensors: {_some(wrong)} ({len(wrong)} in all). {remedy}")


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:SHOWN]) + (", ..." if len(ordered) > SHOWN else "")


def without_dropout(decoder: nn.Module) -> None:
    """Set every rate of dropout in `decoder` to zero: its configuration alone decides what a run drops."""
    for module in decoder.modules():
        for name, value in vars(module).items():
            if isinstance(value, float) and ("drop" in name or (name == "p" and isinstance(module, nn.Dropout))):
                setattr(module, name, 0.0)


def made_on_cpu(decoder: PreTrainedModel) -> None:
    """Give rotary frequencies, which no checkpoint holds, the values that a CPU computes: a GPU rounds otherwise."""
    for module in decoder.modules():
        buffers = dict(module.named_buffers(recurse=False))
        if any("inv_freq" in name for name in buffers) and hasattr(module, "config"):
            of_cpu = dict(type(module)(module.config).named_buffers(recurse=False))
            for name, buffer in buffers.items():
                buffer.copy_(of_cpu[name])
