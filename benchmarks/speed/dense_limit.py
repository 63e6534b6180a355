"""The limits that speed is compared with: a dense run without any padding, and the machine's matrix products."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.rounds import Contestant
from benchmarks.speed.step import CPU, Step
from benchmarks.speed.work import texts_of
from corpora.triples import Triple
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import set_attention
from encoders.backbone import load_backbone
from encoders.loading import build_tokenizer
from encoders.lora import add_lora
from encoders.precision import resolve_precision
from records.streams import stream_seed
from training.cost.flops import TrainingFlops, Work, training_flops
from training.objectives.infonce import infonce

KERNELS = ("sdpa", "eager")
ROWS = (2048, 8192)  # tokens of a dense forward pass
SIDE, TIMES = 2048, 8  # the square matrices that the matrix rate is taken on, and how many products


class DenseModel(nn.Module):
    """The stock model on texts of one length: no mask, no padding, EOS pooling, ids drawn at random.

    rows: tokens of a forward pass, at most. adapted: with LoRA.
    """

    def __init__(self, config: dict[str, Any], kernel: str, rows: int, adapted: bool) -> None:
        super().__init__()
        precision = resolve_precision(config["precision"], CPU)
        self.compute, self.rows = precision.compute, rows
        self.backbone = load_backbone(config["model"], precision.weights)
        self.backbone.set_attn_implementation(kernel)
        set_attention(self.backbone, pattern_of(config["attn"]))
        if adapted:
            add_lora(self.backbone, config["lora"], stream_seed(config["seed"], "adapter"), fused=False)
        self.tokenizer = build_tokenizer(config, self.backbone.config.max_position_embeddings)
        self.shapes: dict[tuple[Triple, ...], tuple[int, int]] = {}

    def shape(self, batch: Sequence[Triple]) -> tuple[int, int]:
        """(texts, tokens of each): the real tokens of `batch` at their mean length."""
        key = tuple(batch)
        if key not in self.shapes:
            lengths = list(map(len, self.tokenizer(texts_of(batch))))
            length = round(sum(lengths) / len(lengths))
            self.shapes[key] = round(sum(lengths) / length), length
        return self.shapes[key]

    def vectors(self, batch: Sequence[Triple]) -> list[Tensor]:
        """Unit vectors [chunk, D] of the last tokens, chunk by chunk."""
        texts, length = self.shape(batch)
        ids = torch.randint(4, self.backbone.config.vocab_size, (texts, length))
        return [self._embed(chunk) for chunk in ids.split(max(1, self.rows // length))]

    def _embed(self, ids: Tensor) -> Tensor:
        with torch.autocast("cpu", self.compute, enabled=self.compute is not torch.float32):
            states = self.backbone(input_ids=ids, use_cache=False).last_hidden_state
        return F.normalize(states[:, -1].float(), dim=-1)


class DenseStep(Step):
    """A training step on as many real tokens as a batch has; there is no tokenising in it. Graphs are all kept."""

    def __init__(self, config: dict[str, Any], kernel: str, rows: int) -> None:
        self.model = DenseModel(config, kernel, rows, adapted=True)
        super().__init__(self.model, config)

    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """See `Step`. The first third of the texts are queries, the next their positives."""
        vectors = self.model.vectors(batch)
        leaf = torch.cat([v.detach() for v in vectors]).requires_grad_(True)
        n = len(leaf) // 3
        masked = torch.zeros(n, len(leaf) - n, dtype=torch.bool)
        loss = infonce(leaf[:n], leaf[n:], masked, self.config["objective"]["temperature"])
        (gradient,) = torch.autograd.grad(loss, leaf)
        for out, part in zip(vectors, gradient.split([len(v) for v in vectors]), strict=True):
            out.backward(part)
        texts, length = self.model.shape(batch)
        return loss.detach(), texts * length


def dense_encoding(config: dict[str, Any], kernel: str, rows: int) -> Contestant:
    """Return the encoding of as many tokens as the texts of a batch have; counted as that many texts."""
    model = DenseModel(config, kernel, rows, adapted=False).eval()

    @torch.inference_mode()
    def encode(batch: Sequence[Triple]) -> float:
        model.vectors(batch)
        return float(len(texts_of(batch)))

    return encode


def dense(kind: Callable[..., Any], config: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The dense limit, a step or an encoding, with either kernel, in smaller and larger passes."""
    return {f"{k}, passes of {rows} tokens": partial(kind, config, k, rows) for k in KERNELS for rows in ROWS}


def matrix_products(precision: str) -> Contestant:
    """Return products of large square matrices in the backbone's number format, counted in FLOPs.

    What utilisation is a share of.
    """
    dtype = resolve_precision(precision, CPU).compute
    a, b = (torch.randn(SIDE, SIDE).to(dtype) for _ in range(2))

    def multiply(_item: Any) -> float:
        for _ in range(TIMES):
            _ = a @ b
        return TIMES * 2.0 * SIDE**3

    return multiply


def flops_a_token(config: dict[str, Any], lengths: Sequence[int]) -> float:
    """FLOPs that training on texts of `lengths` needs, over their tokens: no padding, no second forward pass."""
    count = training_flops(config)
    work = Work(chunks=1, texts=len(lengths), tokens=sum(lengths), squares=sum(n * n for n in lengths))
    return TrainingFlops(count.forward, count.both, again=0).of(work) / sum(lengths)
