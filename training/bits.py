"""Bits per byte of held-out text: what a base model is worth, comparable across tokenizers."""

import math
from collections import Counter
from collections.abc import Sequence

import torch
from torch.nn import functional as F
from transformers import PreTrainedModel


def bits_per_byte(
    model: PreTrainedModel, documents: Sequence[Sequence[int]], texts: Sequence[str], eos: int, length: int
) -> float:
    """Cost of each document on its own, its EOS included, over its UTF-8 bytes; the first token costs log2 V.

    Documents longer than `length` tokens are cut into windows that do not see one another.
    """
    nats = 0.0
    model.eval()
    windows = [[*d, eos][i : i + length] for d in documents for i in range(0, len(d) + 1, length)]
    windows.sort(key=len)
    for start in range(0, len(windows), 32):
        rows = [torch.tensor(w) for w in windows[start : start + 32]]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=0)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(r)) for r in rows], batch_first=True)
        with torch.inference_mode():
            logits = model(input_ids=ids, attention_mask=mask.long()).logits.float()
        losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
        nats += float((losses * mask[:, 1:]).sum()) + len(rows) * math.log(model.config.vocab_size)
    return nats / math.log(2) / sum(len(t.encode()) for t in texts)


def unigram_bits_per_byte(
    training: Sequence[Sequence[int]], documents: Sequence[Sequence[int]], texts: Sequence[str], eos: int, vocab: int
) -> float:
    """The same cost under token frequencies of the training text, add-one smoothed."""
    counts = Counter(t for d in training for t in [*d, eos])
    total = sum(counts.values()) + vocab
    nats = -sum(math.log((counts[t] + 1) / total) for d in documents for t in [*d, eos])
    return nats / math.log(2) / sum(len(t.encode()) for t in texts)
