"""Numbers and words of conf/encoder.yaml, for each program that makes vectors; poolers and patterns state theirs."""

from collections.abc import Sequence
from typing import Any

from cli.limits import Limit, real

SHARED_GPU = "POOLING_ABLATION_SHARED_GPU"  # environment: set where several runs of study.py use one GPU
ENCODER = {
    "seed": Limit(0),
    **dict.fromkeys(("text_length", "max_length"), Limit(4)),  # BOS, EOS and something between
    "token_budget": Limit(1, "what fits into a GPU, or 16,384"),
    **dict.fromkeys(("template.landmarks", "template.prepended"), Limit(1, "none")),
    "evaluation.max_length_share": real(1e-6, largest=1),
}
ENCODER_WORDS: dict[str, Sequence[Any]] = {
    "compile": ("auto", "always", "never"),
    "padding_side": ("right", "left"),
    "accelerator": ("auto", "cpu", "gpu", "cuda"),
    "precision": ("auto", "bf16", "mixed", "fp32"),
    "evaluation.autocast": (None, "fp16", "bf16", "fp32"),
    "evaluation.instructions": ("none", "table", "mteb"),
    "model.quantise": (None, "nf4"),
    "model.attn_implementation": ("auto", "unpadded", "sdpa", "eager", "flash_attention_2"),
}
