"""The contract over decoder families with random weights: movement of an embedding and of a gradient, a row per family.

python -m benchmarks.speed.families [--write]
"""

import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import AutoConfig, AutoModel

from benchmarks.page import publish, stamp, table
from benchmarks.speed.invariance import gradient_error, padding_errors
from benchmarks.speed.work import mixed_docstrings
from cli.compose import composed, plain
from cli.errors import guard
from cli.quiet import quieten
from encoders.backbone import load_tokenizer

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
    "mixtral": EXPERTS,
    "qwen2_moe": EXPERTS,
    "qwen3_moe": EXPERTS,
}
TARGETS = {"gpt2": ["c_attn", "c_fc"], "gpt_neox": ["query_key_value", "dense_h_to_4h"]}  # of the others q_proj, v_proj
POOLERS, ATTENTIONS = ("eos", "mean", "multilayer"), ("causal", "bi")
TEXTS = 12


def save(family: str, folder: Path, **changes: float) -> None:
    """Write a decoder of the family with random weights. changes: of `SIZES`."""
    torch.manual_seed(0)
    settings = {**SIZES, **FAMILIES[family], **changes}
    config = AutoConfig.for_model(family, **{key: value for key, value in settings.items() if value is not None})
    AutoModel.from_config(config).save_pretrained(folder)


def row(family: str, texts: list[str]) -> list[str]:
    """Measure one family: the largest movement over poolers, attentions and sides of padding; that of a gradient."""
    moved, gradient = 0.0, 0.0
    usual = plain(composed("train", ["precision=fp32", "max_length=64"]))
    tokenizer = load_tokenizer(usual["model"])
    with TemporaryDirectory() as place:
        save(family, Path(place), vocab_size=len(tokenizer), initializer_range=0.05)
        tokenizer.save_pretrained(place)
        for pooler, attn in product(POOLERS, ATTENTIONS):
            cfg = plain(composed("train", [f"pooler={pooler}", f"attn={attn}", "precision=fp32", "max_length=64"]))
            cfg["model"]["path"] = place
            cfg["lora"]["targets"] = TARGETS.get(family, ["q_proj", "v_proj"])
            moved = max(moved, *padding_errors(cfg, texts))
            if pooler == "multilayer":
                gradient = max(gradient, gradient_error(cfg, texts))
    return [family, f"{moved:.1e}", f"{gradient:.1e}"]


def main() -> None:
    """Print the table; with --write, put it into docs/tables/performance.md."""
    quieten()
    texts = mixed_docstrings()[:TEXTS]
    head = ["family", "embedding: padded on either side vs alone", "gradient: GradCache vs one batch"]
    rows = [row(family, texts) for family in FAMILIES]
    caption = (
        f"Largest difference over {TEXTS} docstrings, the poolers {', '.join(POOLERS)} (gradient: multilayer) and "
        f"attention {' and '.join(ATTENTIONS)}; three layers of width {SIZES['hidden_size']}, random weights, float32. "
        "The attention of each was proved at the start."
    )
    publish("families", "Families", [caption, table(head, rows), stamp()], "--write" in sys.argv[1:])


if __name__ == "__main__":
    guard(main)
