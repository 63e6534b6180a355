"""An encoder from a configuration (untrained) or from a run folder (trained)."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers.utils import cached_file

from encoders.attention import probe, set_attention
from encoders.backbone import load_backbone, load_tokenizer, model_path
from encoders.encoder import Encoder
from encoders.fused_lora import fuse_lora
from encoders.precision import Precision, best_device, resolve_autocast, resolve_precision
from encoders.routers import experts_of
from encoders.text_encoder import TextEncoder
from encoders.tokens import GLUED, INSTRUCTION_TEMPLATE, TextTokenizer
from poolers.registry import build_pooler
from records.errors import UserError
from records.fingerprint import of_files, of_tensors, of_value
from records.streams import stream_seed

Config = dict[str, Any]
ADAPTER = "adapter/adapter_model.safetensors"


def build_encoder(cfg: Config, precision: Precision, device: torch.device) -> Encoder:
    """Build backbone, attention and pooler of `cfg`, the head at its seeded start; refuse attention that leaks."""
    backbone = load_backbone(cfg["model"], precision.weights)
    backbone.to(device)  # type: ignore[arg-type]
    set_attention(backbone, cfg["attn"]["is_causal"])
    probe(backbone, cfg["attn"]["is_causal"])
    shape = backbone.config.get_text_config()
    seed = stream_seed(cfg["seed"], "head")
    pooler = build_pooler(cfg["pooler"], shape.hidden_size, shape.num_hidden_layers, seed, experts_of(backbone)).to(
        device
    )
    return Encoder(backbone, pooler, cfg["pooler"]["normalize"], precision.compute)


def build_tokenizer(cfg: Config, positions: int, template: str = INSTRUCTION_TEMPLATE) -> TextTokenizer:
    """Build the tokenizer of `cfg`; `positions` is what the model was made for, `max_length` must fit in."""
    if cfg["max_length"] > positions:
        raise UserError(
            f"max_length={cfg['max_length']} is more than the {positions} positions of {cfg['model']['path']}. "
            "Lower max_length."
        )
    if cfg["max_length"] < 4:
        raise UserError(f"max_length={cfg['max_length']} leaves no room for text. Give at least 4.")
    return TextTokenizer(load_tokenizer(cfg["model"]), cfg["max_length"], cfg["padding_side"], template)


def base_fingerprints(model: Config) -> dict[str, str]:
    """sha256 of the base weights' files and of the tokenizer's."""
    path = Path(model_path(model["path"]))
    if not path.is_dir():
        path = Path(str(cached_file(str(path), "config.json"))).parent
    weights = sorted(path.glob("*.safetensors"))
    tokenizer = [p for p in path.iterdir() if p.name.startswith(("tokenizer", "special_tokens", "vocab", "merges"))]
    return {"base_weights_sha256": of_files(weights), "tokenizer_sha256": of_files(tokenizer)}


def is_frozen(cfg: Config) -> bool:
    """Whether the run of `cfg` trains a head alone (backbone.frozen=true) and so has no adapter."""
    return bool(cfg.get("backbone", {}).get("frozen"))  # older manifests and evaluate.yaml have no such key


def untrained(cfg: Config) -> TextEncoder:
    """The start of a run: LoRA is the identity there, so it is left out; the head is as the seed draws it."""
    return _text_encoder(cfg, None)


def load_run(folder: Path, cfg: Config) -> TextEncoder:
    """The trained encoder of a finished run. cfg: the configuration in the run's manifest.

    LoRA is merged into float32 weights (it stays apart where the base is bf16, which would round it away).
    A run of backbone.frozen=true has a head only. Raises `UserError` where adapter or head are absent or do not fit.
    """
    for part in ("head.safetensors",) if is_frozen(cfg) else (ADAPTER, "head.safetensors"):
        if not (folder / part).is_file():
            raise UserError(
                f"The run folder {folder} has no {part}. Train it again: delete the folder and run train.py."
            )
    return _text_encoder(cfg, folder)


def _text_encoder(cfg: Config, run: Path | None) -> TextEncoder:
    device = best_device(cfg.get("accelerator", "auto"))
    precision = resolve_precision(cfg["precision"], device)
    encoder = build_encoder(cfg, precision, device)
    if run:
        _load_trained(encoder, run, precision, adapted=not is_frozen(cfg))
    if encoder.pooler.lacks_statistics:
        raise UserError(
            "pooler.standardise=corpus needs statistics. Make them with python -m training.standardise out=<file> "
            "and the same words, then give pooler.statistics=<file>."
        )
    own = cfg["evaluation"]
    encoder.compute = resolve_autocast(own["autocast"], precision)
    cfg = {**cfg, "max_length": max(4, round(cfg["max_length"] * own["max_length_share"]))}
    positions = encoder.backbone.config.get_text_config().max_position_embeddings
    tokenizer = build_tokenizer(cfg, positions, GLUED if own["glued"] else INSTRUCTION_TEMPLATE)
    trained = {"head": of_tensors(encoder.pooler.state_dict())}
    if run and not is_frozen(cfg):
        trained["adapter"] = of_files([run / ADAPTER])
    settings = {k: cfg[k] for k in ("attn", "pooler", "max_length", "evaluation")} | {"precision": precision.name}
    identity = of_value([base_fingerprints(cfg["model"]), trained, settings])
    return TextEncoder(encoder, tokenizer, identity, cfg["token_budget"])


def _load_trained(encoder: Encoder, run: Path, precision: Precision, adapted: bool) -> None:
    from peft import PeftModel

    try:
        if adapted:
            lora = PeftModel.from_pretrained(encoder.backbone, str(run / "adapter"))
            if precision.weights is torch.float32:
                encoder.backbone = lora.merge_and_unload()
            else:
                fuse_lora(encoder.backbone)  # as in training: in bf16 another order of sums is another rounding
        encoder.pooler.load_state_dict(load_file(run / "head.safetensors"))
    except (RuntimeError, ValueError) as error:
        raise UserError(f"The run in {run} does not fit its base model: {str(error).splitlines()[0]}") from error
