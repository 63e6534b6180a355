"""The card of a base model that this repository pretrained."""

from typing import Any


def base_model_card(figures: dict[str, Any]) -> str:
    """Return the README of the exported model: what it is, the command, what it cost, what it is worth."""
    f = figures
    return f"""# The embedded base model

A decoder of {f["parameters"] / 1e6:.2f} M parameters (Qwen2 architecture) with a byte-level BPE, both made from random
weights by this repository's own recipe, on the docstrings of the training side (no text of the eight held-out
packages nor of the development package).

    python train.py experiment=pretrain_tiny

| | |
|---|---|
| steps, tokens seen | {f["steps"]:,}, {f["tokens_seen"]:,} ({f["tokens_distinct"]:,} distinct) |
| hours, CPU threads | {f["hours"]}, {f["threads"]} |
| sha256 of the text | `{f["data_sha256"]}` |
| weights | bf16 safetensors |

Bits per byte of {f["held_out_documents"]} held-out documents (chosen by hash, each on its own, EOS included):

| this model | unigram over its tokens | the same architecture, random weights |
|---|---|---|
| **{f["bits_per_byte"]:.3f}** | {f["bits_per_byte_unigram"]:.3f} | {f["bits_per_byte_random_weights"]:.3f} |

Small, and trained on one kind of text: it is there so that a whole study runs on an ordinary machine, not to compete.
The exact configuration and the figures are in `pretraining.json`.
"""
