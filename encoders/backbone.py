"""Base models and tokenizers by transformers' Auto classes, from the hub or from a folder; never by executing code."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers import __version__ as version

from cli.compose import HOME
from cli.errors import UserError
from encoders.attention.switch import WINDOWLESS, kernel_of, knows_sdpa
from encoders.precision import quantisation, same_in_evaluation, use_autocast

TOKENIZER_FILES = "Put tokenizer.json and tokenizer_config.json there: tokenizer.save_pretrained(<folder>)."
UNBOUNDED = 2**20  # positions
JITTER = ("jitter_noise", "input_jitter_noise", "moe_jitter_eps")  # PhiMoE's router_jitter_noise routes always
ANEW = "Download it anew, or save it anew with save_pretrained()."


def model_path(path: str | None, weights: bool = True) -> str:
    """Return a hub name or an existing folder; relative folders are looked up here and in the repository.

    Raises `UserError` for a folder that lacks configuration, or weights where they are asked for.
    """
    if not path:
        raise UserError("model.path is empty. Give a folder or a hub name: model.path=Qwen/Qwen2-0.5B.")
    if path.endswith(".gguf"):
        raise UserError(f"{path} is a GGUF file. Make a folder: python -m benchmarks.from_gguf {path} to=<folder>.")
    folder = next((folder for folder in (Path(path).expanduser(), HOME / path) if folder.is_dir()), None)
    if folder is not None:
        _check_folder(folder, weights)
        return str(folder)
    if path.startswith((".", "/", "~", "assets/")) or path.count("/") > 1:
        raise UserError(
            f"There is no model folder {path}. Give one, or a hub name; of a finished run put it or a link to it there."
        )
    return path


def _check_folder(folder: Path, needs_weights: bool) -> None:
    if not (folder / "config.json").exists():
        raise UserError(f"The model folder {folder} has no config.json. Save the model with save_pretrained().")
    if needs_weights and not [*folder.glob("*.safetensors"), *folder.glob("*.safetensors.index.json")]:
        pickled = "; its pickled weights (*.bin) are not loaded, convert them to safetensors"
        why = pickled if [*folder.glob("*.bin")] else ""
        raise UserError(f"The model folder {folder} holds no *.safetensors weights{why}. Put model.safetensors there.")


def of_hub(model: dict[str, Any]) -> dict[str, Any]:
    """Return how `from_pretrained` finds `model`: its commit, where one is named, and whether its code is trusted.

    Raises `UserError` for a commit of a folder.
    """
    revision, path = model.get("revision"), model_path(model["path"], weights=False)
    if revision and Path(path).is_dir():
        raise UserError(f"model.revision={revision} is a commit of a hub model, and {path} is a folder. Leave it out.")
    return {"trust_remote_code": model["trust_remote_code"], **({"revision": revision} if revision else {})}


def load_config(model: dict[str, Any]) -> Any:
    """Return the text configuration of `model`, its sliding windows taken out unless `model.sliding_window`."""
    whole = _loaded(model_path(model["path"], weights=False), AutoConfig, **of_hub(model))
    return _without_windows(whole.get_text_config(), model)


def _without_windows(config: Any, model: dict[str, Any]) -> Any:
    """Let every token see all others that `attn` allows it to, unless the model shall keep its windows."""
    if getattr(config, "max_position_embeddings", None) is None:  # families with ALiBi: BLOOM names none at all
        config.max_position_embeddings = getattr(config, "max_seq_len", UNBOUNDED)
    if model["sliding_window"]:
        return config
    if getattr(config, "attention_chunk_size", None) is not None:  # Llama 4's, without which it has no mask
        config.attention_chunk_size = 2 * config.max_position_embeddings
    if getattr(config, "sliding_window", None) is None:
        return config
    if config.model_type in WINDOWLESS:
        config.sliding_window, config.use_sliding_window = None, False
        if getattr(config, "layer_types", None):
            config.layer_types = ["full_attention" for _ in config.layer_types]
    else:  # a window must exist: make it wider than any text
        config.sliding_window = 2 * config.max_position_embeddings
    return config


def load_backbone(
    model: dict[str, Any], dtype: torch.dtype, padding: bool = False, device: torch.device | None = None
) -> PreTrainedModel:
    """Return the decoder without its language-model head, in `dtype`, all parameters frozen.

    Its own dropout is off. padding: see `kernel_of`. device: where the tensors are read to, one after another; None:
    the CPU. Raises `UserError` where checkpoint and decoder do not have the same tensors, or one is not finite.
    """
    config, path = load_config(model), model_path(model["path"])
    kernel, quantised = kernel_of(model, config, padding), quantisation(model, dtype)
    backbone, info = _loaded(
        path,
        AutoModel,
        config=config,
        **of_hub(model),
        attn_implementation=kernel,
        dtype=dtype,
        use_safetensors=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are refused by name below
        device_map=None if device is None and not quantised else {"": device or "cpu"},
        quantization_config=quantised,
    )
    check_filled(backbone, path, info)
    check_finite(backbone, path)
    without_dropout(backbone)
    use_autocast(backbone)
    same_in_evaluation(backbone)
    return backbone.requires_grad_(False).eval()


def empty_backbone(model: dict[str, Any], dtype: torch.dtype) -> PreTrainedModel:
    """Return the decoder on the meta device: shapes and names, no weights (to check a study at hub scale).

    Where `model.architecture` describes `model.path`, no hub is needed.
    """
    published = dict(model.get("architecture") or {})
    known = bool(published) and published.pop("of", None) == model["path"]
    config = _without_windows(AutoConfig.for_model(**published), model) if known else load_config(model)
    # others than these need a GPU, and have the same shapes
    kernel = "sdpa" if model["attn_implementation"] != "eager" and knows_sdpa(config) else "eager"
    with torch.device("meta"):
        empty = AutoModel.from_config(config, dtype=dtype, attn_implementation=kernel)
    use_autocast(empty)
    return cast(PreTrainedModel, empty.requires_grad_(False))


def load_tokenizer(model: dict[str, Any]) -> PreTrainedTokenizerBase:
    """Return the fast tokenizer of `model`. Raises `UserError` where there is none, or one that knows no words."""
    tokenizer = _loaded(model_path(model["path"]), AutoTokenizer, **of_hub(model))
    if set(tokenizer.get_vocab()) <= {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens}:
        fault = "has no vocabulary, so every text would be the same tokens"
        raise UserError(f"The tokenizer of {model['path']} {fault}. {TOKENIZER_FILES}")
    _check_reach(tokenizer, model["path"], load_config(model).vocab_size)
    if not tokenizer.is_fast:
        raise UserError(f"The tokenizer of {model['path']} has no tokenizer.json; token roles need its offsets.")
    return tokenizer


def _check_reach(tokenizer: PreTrainedTokenizerBase, path: str, size: int) -> None:
    """Refuse a tokenizer of `path` with tokens beyond the `size` rows of the embedding matrix, by name.

    Tokens of images or sound, which a tokenizer names by keys of its own, may lie there (Gemma 3's do).
    """
    beyond = sorted((token, word) for word, token in tokenizer.get_vocab().items() if token >= size)
    added, roles = tokenizer.get_added_vocab(), tokenizer.special_tokens_map
    others = {word for role, word in roles.items() if role not in PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES}
    of_text = [f"{word!r} ({token})" for token, word in beyond if word in added and word not in others]
    if any(word not in added for _, word in beyond):
        fault = f"gives tokens up to {beyond[-1][0]}, and the model has {size}: it is that of another model"
        raise UserError(f"The tokenizer of {path} {fault}. {TOKENIZER_FILES}")
    if of_text:
        pad = "; as the pad token take one that is there, tokenizer.pad_token = tokenizer.eos_token"
        pad = pad if any(word == tokenizer.pad_token for _, word in beyond) else ""
        fault = f"was given {_some(of_text)}, and the model has embeddings for {size} tokens, from 0"
        mend = f"Resize them and save both, model.resize_token_embeddings(len(tokenizer)){pad}"
        raise UserError(f"The tokenizer of {path} {fault}. {mend}.")


def _loaded(path: str, auto: Any, **settings: Any) -> Any:
    """Return `auto.from_pretrained`. Raises `UserError`, which names the model, where transformers stumbles over it."""
    try:
        return auto.from_pretrained(path, **settings)
    except Exception as error:
        text = str(error).strip()
        if not Path(path).is_dir() and any(word in text.lower() for word in ("connect", "couldn't", "offline")):
            raise UserError(
                f"The hub model '{path}', or this revision, is not in the local cache and the hub cannot be reached. "
                "Connect once, or download it and give model.path=<folder>."
            ) from error
        if "custom code" in text or "does not recognize" in text:
            raise UserError(
                f"transformers {version} has no code for the family of '{path}'. Give a base of a family that it has "
                "(of DeepSeek: deepseek-ai/DeepSeek-V2-Lite), or, if the repository brings code that you trust, "
                "model.trust_remote_code=true, which executes it."
            ) from error
        what, remedy = ("tokenizer", TOKENIZER_FILES) if auto is AutoTokenizer else ("model", ANEW)
        remedy = "Free memory there." if "out of memory" in text else remedy
        why = (text.splitlines() or [type(error).__name__])[0][:300].rstrip(". :")
        raise UserError(f"'{path}' cannot be loaded as a {what}: {why}. {remedy}") from error


def check_filled(decoder: PreTrainedModel, path: str, info: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that leaves tensors of `decoder` at random, or holds more of it than config.json describes.

    info: what transformers says of the loading. Other parts of a model, such as a language-model head, are left in the
    file. Raises `UserError`.
    """
    if getattr(decoder, "_hf_peft_config_loaded", False):
        raise UserError(
            f"{path} holds an adapter beside its weights (adapter_config.json). Merge it (merge_and_unload) and save "
            "the model, or take the adapter out of the folder."
        )
    kind, left = type(decoder).__name__, list(info["unexpected_keys"])
    if missing := info["missing_keys"]:
        others = f" They hold {_some(left)} instead." if left else ""
        fault = f"lack {len(missing)} tensors of {kind}: {_some(missing)}"
        raise UserError(f"The weights of {path} {fault}.{others} {ANEW}")
    shapes = [f"{name} {list(there)}, not {list(here)}" for name, there, here in info["mismatched_keys"]]
    children, usual = {name.split(".")[0] for name in decoder.state_dict()}, f"{decoder.base_model_prefix}."
    inside = [name for name in left if name.removeprefix(usual).split(".")[0] in children]
    for wrong, what in ((shapes, "have other shapes than"), (inside, "hold tensors without a place in")):
        if wrong:
            raise UserError(
                f"The weights of {path} {what} {kind} of its config.json: {_some(wrong)} ({len(wrong)} in all). "
                "Save weights and config.json together with save_pretrained()."
            )


def check_finite(decoder: nn.Module, path: str) -> None:
    """Refuse weights with NaN or infinity, by tensor: each state that meets one is as bad. Raises `UserError`."""
    wide = {name: weight for name, weight in decoder.named_parameters() if weight.dtype.itemsize > 1}
    extremes = ((name, weight.aminmax()) for name, weight in wide.items())  # 50 times as fast as isfinite on a CPU
    if bad := [name for name, (least, most) in extremes if not (least.isfinite() and most.isfinite())]:
        raise UserError(f"The weights of {path} hold NaN or infinity in {_some(bad)} ({len(bad)} in all). {ANEW}")


def check_names(what: str, wanted: Iterable[str], names: Iterable[str], remedy: str) -> None:
    """Refuse a file whose tensors are not those that are `wanted`, by name. what: the file. Raises `UserError`."""
    wanted, names = set(wanted), set(names)
    for wrong, verb in ((wanted - names, "lacks"), (names - wanted, "holds unknown")):
        if wrong:
            raise UserError(f"{what} {verb} tensors: {_some(wrong)} ({len(wrong)} in all). {remedy}")


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (", ..." if len(ordered) > 3 else "")


def without_dropout(decoder: PreTrainedModel) -> None:
    """Set every rate of dropout, and of routers' noise, to zero: a run's configuration alone decides what it drops."""
    for owner in (*decoder.modules(), decoder.config):  # Falcon's layers read the configuration in each pass
        for name, value in list(vars(owner).items()):
            noise = "drop" in name or name in JITTER or (name == "p" and isinstance(owner, nn.Dropout))
            if noise and isinstance(value, float):
                setattr(owner, name, 0.0)
