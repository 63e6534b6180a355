"""The card of a base model that this repository pretrained."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F
from transformers import PreTrainedModel


def windows(ids: Sequence[int], eos: int, length: int) -> list[list[int]]:
    """Return a document's tokens and its EOS, cut into windows of `length` that do not see one another."""
    return [[*ids, eos][i : i + length] for i in range(0, len(ids) + 1, length)]


def per_byte(nats: float, unpredicted: int, vocabulary: int, texts: Sequence[str]) -> float:
    """Return bits per byte of UTF-8 of texts whose predicted tokens cost `nats`; the others cost log2 V each."""
    return (nats + unpredicted * math.log(vocabulary)) / math.log(2) / sum(len(t.encode()) for t in texts)


def bits_per_byte(
    model: PreTrainedModel, documents: Sequence[Sequence[int]], texts: Sequence[str], eos: int, length: int
) -> float:
    """Cost of each document on its own, its EOS included, over its UTF-8 bytes; the first token costs log2 V.

    Documents longer than `length` tokens are cut into windows that do not see one another.
    """
    nats = 0.0
    model.eval()
    parts = sorted((window for d in documents for window in windows(d, eos, length)), key=len)
    for start in range(0, len(parts), 32):
        rows = [torch.tensor(w) for w in parts[start : start + 32]]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=0)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(r)) for r in rows], batch_first=True)
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=mask.long()).logits.float()
        losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
        nats += float((losses * mask[:, 1:]).sum())
    return per_byte(nats, len(parts), model.config.vocab_size, texts)


def unigram_bits_per_byte(
    training: Sequence[Sequence[int]], documents: Sequence[Sequence[int]], texts: Sequence[str], eos: int, vocab: int
) -> float:
    """The same cost under token frequencies of the training text, add-one smoothed."""
    counts = Counter(t for d in training for t in [*d, eos])
    total = sum(counts.values()) + vocab
    nats = -sum(math.log((counts[t] + 1) / total) for d in documents for t in [*d, eos])
    return per_byte(nats, 0, vocab, texts)


def base_model_card(figures: dict[str, Any], experiment: str = "pretrain_tiny") -> str:
    """Return the README of the exported model: what it is, the command, what it cost, what it is worth."""
    f = figures
    shares = f.get("expert_shares")
    family = "OLMoE" if shares else "Qwen2"
    mixture = f", {f['active_parameters'] / 1e6:.2f} M of them active for a token" if shares else ""
    return f"""# The embedded {"mixture of experts" if shares else "base model"}

A decoder of {f["parameters"] / 1e6:.2f} M parameters{mixture} ({family} architecture)
with a byte-level BPE, both made from random weights by this repository's own recipe, on the docstrings of the training
side (no text of the eight held-out packages nor of the development package).

    python train.py experiment={experiment}

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
{balance_table(shares) if shares else ""}
Small, and trained on one kind of text: it is there so that a whole study runs on an ordinary machine, not to compete.
The exact configuration and the figures are in `pretraining.json`.
"""


def balance_table(shares: list[list[float]]) -> str:
    """Return a table of how evenly the experts of each layer are used; shares: [layers][experts], each row sums to 1.

    Entropy is that of the shares over its largest value, log E: 1 where all experts are used alike.
    """
    rows = []
    for layer, of_layer in enumerate(shares):
        entropy = sum(-s * math.log(s) for s in of_layer if s > 0) / math.log(len(of_layer))
        rows.append(f"| {layer} | {min(of_layer):.3f} | {max(of_layer):.3f} | {entropy:.3f} |")
    head = f"""
Use of the {len(shares[0])} experts of each layer on the held-out documents, as shares of all choices; even use is
{1 / len(shares[0]):.3f}:

| layer | least used | most used | entropy / log E |
|---|---|---|---|
"""
    return head + "\n".join(rows) + "\n"
