"""Decoder families with random weights, as small as their shapes allow."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 48,
    "moe_intermediate_size": 48,
    "shared_expert_intermediate_size": 48,
    "vocab_size": 160,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2}
OLD: dict[str, Any] = {"head_dim": None, "num_key_value_heads": None}  # keys that these families have not
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": OLD,
    "phi": OLD,
    "gpt_neox": OLD,
    "opt": {**OLD, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "llama": {},
    "mistral": {"sliding_window": 1},
    "qwen2": {"sliding_window": 1, "use_sliding_window": True, "max_window_layers": 0},
    "qwen3": {},
    "gemma3_text": {"sliding_window": 1, "query_pre_attn_scalar": 8},
    "olmo2": {},
    "olmoe": EXPERTS,
    "mixtral": {**EXPERTS, "router_jitter_noise": 0.05},
    "persimmon": {**OLD, "hidden_dropout": 0.1, "attention_dropout": 0.1},
    "qwen2_moe": EXPERTS,
    "qwen3_moe": EXPERTS,
}
TARGETS = {"gpt2": ["c_attn", "c_fc"], **{k: ["query_key_value", "dense_h_to_4h"] for k in ("gpt_neox", "persimmon")}}


def save(family: str, folder: Path, **changes: Any) -> None:
    """Write a decoder of the family with random weights. changes: of `SIZES`."""
    torch.manual_seed(0)
    settings = {**SIZES, **FAMILIES[family], **changes}
    config = AutoConfig.for_model(family, **{key: value for key, value in settings.items() if value is not None})
    AutoModel.from_config(config).save_pretrained(folder)
