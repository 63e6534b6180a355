"""What objective=clm needs beside its steps: a tokenizer, the balance of experts, windows and bits per byte."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedTokenizerFast

PAD, EOS, MASK = "<|pad|>", "<|endoftext|>", "<|mask|>"
# GPT-4's splitting by words, with numbers cut into single digits as in Llama and Qwen2
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train_bpe(texts: Iterable[str], vocab_size: int, max_length: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE of `vocab_size` tokens, three of them special; any text can be encoded."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(WORDS), behavior="isolated")
    in_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, in_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    special, alphabet = [PAD, EOS, MASK], sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, mask_token=MASK, model_max_length=max_length
    )


def balance_loss(logits: Sequence[Tensor], top_k: int) -> Tensor:
    """Mean over layers of E sum_e f_e p_e: Switch Transformers (arXiv 2101.03961), equations 4 to 6, for top-k.

    f_e: share of the tokens that have expert e among their top k, over k; p_e: mean routing weight. 1 where all
    experts are used alike, E where one takes everything with k = 1. logits: [tokens, E] of each layer, before top-k.
    """
    losses = []
    for weights in (of_layer.float().softmax(dim=-1) for of_layer in logits):
        experts = weights.shape[-1]
        chosen = F.one_hot(weights.topk(top_k, dim=-1).indices, experts).float().sum(dim=1)
        losses.append(experts * (chosen.mean(dim=0) / top_k * weights.mean(dim=0)).sum())
    return torch.stack(losses).mean()


def windows(ids: Sequence[int], eos: int, length: int) -> list[list[int]]:
    """Return a document's tokens and its EOS, cut into windows of `length` that do not see one another."""
    return [[*ids, eos][i : i + length] for i in range(0, len(ids) + 1, length)]


def per_byte(nats: float, unpredicted: int, vocabulary: int, texts: Sequence[str]) -> float:
    """Return bits per byte of UTF-8 of texts whose predicted tokens cost `nats`; the others cost log2 V each."""
    return (nats + unpredicted * math.log(vocabulary)) / math.log(2) / sum(len(t.encode()) for t in texts)
