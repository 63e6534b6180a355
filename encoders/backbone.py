"""Base models and tokenizers by transformers' Auto classes, from the hub or from a folder; never by executing code."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import MODEL_MAPPING, AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from encoders.unpadded import UNPADDED
from records.errors import UserError

# Families that run without any window. The others build a window's mask always, and in Gemma 3 the kind of a layer also
# decides its rotary base, so kinds must stay.
WINDOWLESS = ("mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
ROWS = (*WINDOWLESS, "llama", "olmo2", "olmoe", "qwen2_moe")  # tests/encoders/test_families.py
NO_PADDING = (
    "model.attn_implementation=unpadded has no states of padding, which the pooler reads with last_real=false or "
    "mask_padding=false. Give auto, sdpa or eager, or leave these keys at true."
)
ROOT = Path(__file__).resolve().parent.parent


def model_path(path: str | None, weights: bool = True) -> str:
    """Return a hub name or an existing folder; relative folders are looked up here and in the repository.

    Raises `UserError` for a folder that lacks configuration, or weights where they are asked for.
    """
    if not path:
        raise UserError("model.path is empty. Give a folder or a hub name: model.path=Qwen/Qwen2-0.5B.")
    for folder in (Path(path).expanduser(), ROOT / path):
        if folder.is_dir():
            _check_folder(folder, weights)
            return str(folder)
    if path.startswith((".", "/", "~", "assets/")) or path.count("/") > 1:
        raise UserError(
            f"There is no model folder {path}. Give an existing folder or a hub name such as Qwen/Qwen2-0.5B."
        )
    return path


def _check_folder(folder: Path, needs_weights: bool) -> None:
    if not (folder / "config.json").is_file():
        raise UserError(f"The model folder {folder} has no config.json. Save the model with save_pretrained().")
    weights = [*folder.glob("*.safetensors"), *folder.glob("*.safetensors.index.json")]
    if needs_weights and not weights:
        found = (
            "; its pickled weights (*.bin) are not loaded, convert them to safetensors"
            if [*folder.glob("*.bin")]
            else ""
        )
        raise UserError(
            f"The model folder {folder} holds no *.safetensors weights{found}. Put model.safetensors there."
        )


def load_config(model: dict[str, Any]) -> Any:
    """Return the text configuration of `model`, its sliding windows taken out unless `model.sliding_window`."""
    path = model_path(model["path"], weights=False)
    config = _loaded(path, AutoConfig, trust_remote_code=model["trust_remote_code"])
    return _without_windows(config.get_text_config(), model)


def _without_windows(config: Any, model: dict[str, Any]) -> Any:
    """Let every token see all others that `attn` allows it to, unless the model shall keep its windows."""
    if model["sliding_window"] or getattr(config, "sliding_window", None) is None:
        return config
    if config.model_type not in WINDOWLESS:  # elsewhere a window must exist: make it wider than any text
        config.sliding_window = 2 * config.max_position_embeddings
        return config
    config.sliding_window = None
    config.use_sliding_window = False
    if getattr(config, "layer_types", None):
        config.layer_types = ["full_attention" for _ in config.layer_types]
    return config


def kernel_of(model: dict[str, Any], config: Any, padding: bool = False) -> str:
    """The attention kernel; "auto" takes what was measured to be fast on short texts (the result is the same).

    padding: whether a pooler reads states of padding, which a decoder has under a padded kernel alone. Raises
    `UserError` for `unpadded` where it cannot be had.
    """
    kernel, takes_rows = model["attn_implementation"], _takes_rows(config)
    refuse_unpadded(model, padding)
    if kernel == UNPADDED and not takes_rows:
        raise UserError(
            f"model.attn_implementation=unpadded is not made for {config.model_type} with a sliding window or another "
            "kind of attention than softmax over all tokens. Give sdpa or eager, or model.sliding_window=false."
        )
    if kernel != "auto":
        return kernel
    if takes_rows and not padding:
        return UNPADDED
    return "sdpa" if torch.cuda.is_available() and _knows_sdpa(config) else "eager"


def _knows_sdpa(config: Any) -> bool:
    """Whether sdpa computes this family's attention; soft-capped scores (Gemma 2) and sinks (gpt-oss) it cannot.

    False for code that is not transformers' own: eager is the code itself.
    """
    family = MODEL_MAPPING.get(type(config), None)
    return bool(getattr(family, "_supports_sdpa", False))


def refuse_unpadded(model: dict[str, Any], padding: bool) -> None:
    """Raise `UserError` where `model` asks for the kernel without padding, and a pooler reads states of padding."""
    if model["attn_implementation"] == UNPADDED and padding:
        raise UserError(NO_PADDING)


def _takes_rows(config: Any) -> bool:
    """Whether attention is the softmax over all tokens of a text and nothing else, so that texts can share a row."""
    window = getattr(config, "sliding_window", None)
    return config.model_type in ROWS and (window is None or window > config.max_position_embeddings)


def load_backbone(model: dict[str, Any], dtype: torch.dtype, padding: bool = False) -> PreTrainedModel:
    """Return the decoder without its language-model head, in `dtype`, all parameters frozen.

    padding: see `kernel_of`.
    """
    config = load_config(model)
    kernel = kernel_of(model, config, padding)
    settings = {"trust_remote_code": model["trust_remote_code"], "attn_implementation": kernel}
    try:
        backbone = _loaded(
            model_path(model["path"]), AutoModel, config=config, dtype=dtype, use_safetensors=True, **settings
        )
    except (RuntimeError, json.JSONDecodeError) as error:
        raise UserError(
            f"The weights of {model['path']} cannot be loaded: {_first(error)} Download or save them anew."
        ) from error
    return backbone.requires_grad_(False).eval()


def shape_of(model: dict[str, Any]) -> Any:
    """The configuration of `model`: `model.architecture` where it describes `model.path`, so that no hub is needed."""
    published = dict(model.get("architecture") or {})
    if published and published.pop("of", None) == model["path"]:
        return _without_windows(AutoConfig.for_model(**published), model)
    return load_config(model)


def empty_backbone(model: dict[str, Any], dtype: torch.dtype) -> PreTrainedModel:
    """Return the decoder on the meta device: shapes and names, no weights (to check a study at hub scale)."""
    config = shape_of(model)
    # others than these need a GPU, and have the same shapes
    kernel = "sdpa" if model["attn_implementation"] != "eager" and _knows_sdpa(config) else "eager"
    with torch.device("meta"):
        empty = AutoModel.from_config(config, dtype=dtype, attn_implementation=kernel)
    return empty.requires_grad_(False)


def load_tokenizer(model: dict[str, Any]) -> PreTrainedTokenizerBase:
    """Return the fast tokenizer of `model`. Raises `UserError` where there is none."""
    tokenizer = _loaded(model_path(model["path"]), AutoTokenizer, trust_remote_code=model["trust_remote_code"])
    if not tokenizer.is_fast:
        raise UserError(f"The tokenizer of {model['path']} has no tokenizer.json; token roles need its offsets.")
    return tokenizer


def parts(backbone: PreTrainedModel) -> tuple[list[torch.nn.Module], torch.nn.Module]:
    """Return the decoder layers and the final norm."""
    inner: Any = getattr(backbone, "language_model", backbone)
    return list(inner.layers), inner.norm


def _loaded(path: str, auto: Any, **settings: Any) -> Any:
    try:
        return auto.from_pretrained(path, **settings)
    except (OSError, ValueError) as error:
        text = str(error)
        if not Path(path).is_dir() and (
            "connect" in text.lower() or "couldn't" in text.lower() or "offline" in text.lower()
        ):
            raise UserError(
                f"The hub model '{path}' is not in the local cache and the hub cannot be reached. "
                "Connect once, or download it and give model.path=<folder>."
            ) from error
        raise UserError(f"'{path}' cannot be loaded as a model: {_first(error)}") from error


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
