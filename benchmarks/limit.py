"""The limits that speed is compared with: a dense run without any padding, and the machine's matrix products."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.step import CPU, Step
from benchmarks.work import texts_of
from corpora.triples import Triple
from encoders.attention import set_attention
from encoders.backbone import load_backbone
from encoders.loading import build_tokenizer
from encoders.lora import add_lora
from encoders.precision import resolve_precision
from records.streams import stream_seed
from training.flops import TrainingFlops, Work, training_flops
from training.infonce import infonce

SIDE = 2048  # of the square matrices that the matrix rate is taken on


class DenseStep(Step):
    """As many real tokens, in texts of one length (their mean), through the stock model with the same LoRA.

    EOS pooling. No mask, no padding, no tokeniser: ids are drawn at random. Graphs of all chunks are kept. rows: texts
    of a chunk times their length, at most.
    """

    def __init__(self, config: dict[str, Any], kernel: str, rows: int) -> None:
        precision = resolve_precision(config["precision"], CPU)
        self.compute, self.rows = precision.compute, rows
        self.backbone = load_backbone(config["model"], precision.weights)
        self.backbone.set_attn_implementation(kernel)
        set_attention(self.backbone, config["attn"]["is_causal"])
        add_lora(self.backbone, config["lora"], stream_seed(config["seed"], "adapter"))
        self.tokenizer = build_tokenizer(config, self.backbone.config.max_position_embeddings)
        self.shapes: dict[int, tuple[int, int]] = {}  # texts and their length, by batch
        super().__init__(self.backbone, config)

    def shape(self, batch: Sequence[Triple]) -> tuple[int, int]:
        """(texts, tokens of each): real tokens of `batch` over their mean length. Tokenised once, outside the timing."""
        if id(batch) not in self.shapes:
            lengths = [len(row) for row in self.tokenizer(texts_of(batch))]
            length = max(1, round(sum(lengths) / len(lengths)))
            self.shapes[id(batch)] = round(sum(lengths) / length), length
        return self.shapes[id(batch)]

    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """See `Step`."""
        texts, length = self.shape(batch)
        ids = torch.randint(4, self.backbone.config.vocab_size, (texts, length))
        vectors = [self.embed(chunk) for chunk in ids.split(max(1, self.rows // length))]
        leaf = torch.cat([v.detach() for v in vectors]).requires_grad_(True)
        n = texts // 3
        masked = torch.zeros(n, texts - n, dtype=torch.bool)
        loss = infonce(leaf[:n], leaf[n:], masked, self.config["objective"]["temperature"])
        (gradient,) = torch.autograd.grad(loss, leaf)
        for out, part in zip(vectors, gradient.split([len(v) for v in vectors]), strict=True):
            out.backward(part)
        return loss.detach(), texts * length

    def embed(self, ids: Tensor) -> Tensor:
        """[B, D] unit vectors of the last tokens; ids: [B, T]."""
        with torch.autocast("cpu", self.compute, enabled=self.compute is not torch.float32):
            states = self.backbone(input_ids=ids, use_cache=False).last_hidden_state
        return F.normalize(states[:, -1].float(), dim=-1)

    @torch.inference_mode()
    def encode(self, batch: Sequence[Triple]) -> float:
        """Encode as many tokens as the texts of `batch` have; return the number of texts that this stands for."""
        texts, length = self.shape(batch)
        self.module.eval()
        for ids in torch.randint(4, self.backbone.config.vocab_size, (texts, length)).split(
            max(1, self.rows // length)
        ):
            self.embed(ids)
        self.module.train()
        return 3.0 * len(batch)


class MatrixRate:
    """FLOPs of products of large square matrices, which is what utilisation is a share of."""

    def __init__(self, precision: str) -> None:
        dtype = resolve_precision(precision, CPU).compute
        self.a, self.b = (torch.randn(SIDE, SIDE).to(dtype) for _ in range(2))

    def __call__(self, _item: Any) -> float:
        """Multiply for a moment; return the FLOPs."""
        for _ in range(8):
            self.a @ self.b
        return 8 * 2.0 * SIDE**3


def useful_flops(config: dict[str, Any], lengths: Sequence[int]) -> float:
    """FLOPs that training on texts of `lengths` needs: no padding, no second forward pass (training/flops.py counts)."""
    count = training_flops(config)
    work = Work().plus([(len(lengths), 0)])
    work = Work(work.chunks, work.texts, sum(lengths), sum(n * n for n in lengths))
    return TrainingFlops(count.forward, count.both, 0).of(work)
