"""The contestants that run in turn on a card: training and encoding of a cell on one shared backbone."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.gpu_card.model import Card, Cell, Config, Prepared, Texts, make_encoder
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import set_attention
from encoders.text_encoder import TextEncoder
from poolers.shared.registry import build_pooler
from records.streams import stream_seed
from training.large_batch import ChunkPlan, LargeBatch
from training.objectives.infonce import infonce

TIMES_SMALLER = 4  # the smallest token budget that is tried after running out of memory, as a part of the configured


class Contestant(ABC):
    """A cell on the shared backbone. `enter` makes what it needs, `leave` lets it go; a call does a turn's work.

    peak_bytes: the largest allocation so far; held_bytes: what was there before a turn's work, mainly weights.

    A call returns the number of tokens; 0 once the card has run out of memory at all budgets tried.
    """

    def __init__(self, cell: Cell, config: Config, backbone: PreTrainedModel, card: Card) -> None:
        self.cell, self.config, self.backbone, self.card = cell, config, backbone, card
        self.budget, self.most = config["token_budget"], config["trainer"]["chunk_size"]
        self.peak_bytes: int | None = None
        self.held_bytes: int | None = None
        self.failed = False
        self._kept = {*self.__dict__, "_kept"}

    def enter(self) -> None:
        """Switch the shared backbone to this cell and make its head; not timed."""
        torch.set_float32_matmul_precision("high" if self.cell.tf32 else "highest")
        set_attention(self.backbone, pattern_of(self.config["attn"]))
        self.card.forget_peak()
        shape = self.backbone.config.get_text_config()
        seed = stream_seed(self.config["seed"], "head")
        with torch.device(self.card.device):
            pooler = build_pooler(self.config["pooler"], shape.hidden_size, shape.num_hidden_layers, seed)
        self.encoder = make_encoder(self.cell.execution, self.backbone, pooler, self.config, self.card)
        self.tokenizer = Prepared(self.config)
        self.start()
        self.held_bytes = self.card.held_bytes

    def leave(self) -> None:
        """Note the peak and free everything but the backbone."""
        peak = self.card.peak_bytes
        self.peak_bytes = peak if self.peak_bytes is None else max(self.peak_bytes, peak or 0)
        for name in self.__dict__.keys() - self._kept:
            del self.__dict__[name]
        for p in self.backbone.parameters():
            p.grad = None
        torch.set_float32_matmul_precision("highest")

    def __call__(self, texts: Texts) -> float:
        """Do the work, wait for its end, return the tokens. Out of memory: again with half the budget."""
        while not self.failed:
            if self._fits(texts):
                return float(sum(map(len, texts.rows)))
            self._smaller()
        return 0.0

    def _fits(self, texts: Texts) -> bool:
        try:
            self.work(texts)
            self.card.wait()
        except torch.OutOfMemoryError:
            return False  # only after this frame are the broken turn's tensors free
        return True

    def _smaller(self) -> None:
        """Halve the budget, or give up; what is kept of a broken turn is made anew."""
        self.leave()
        self.budget //= 2
        self.most = self.most and max(1, self.most // 2)
        self.failed = self.budget * TIMES_SMALLER < self.config["token_budget"]
        if not self.failed:
            self.enter()

    def record(self) -> dict[str, Any]:
        """Return what a record says of it."""
        memory = {"out_of_memory": self.failed, "peak_bytes": self.peak_bytes, "held_bytes": self.held_bytes}
        return {**asdict(self.cell), "token_budget": self.budget, "chunk_size": self.most, **memory}

    @abstractmethod
    def start(self) -> None:
        """Make what the work needs beside the encoder."""

    @abstractmethod
    def work(self, texts: Texts) -> None:
        """Do a turn's work."""


class Training(Contestant):
    """A step: GradCache over the texts' chunks, loss over the whole batch, clipping, AdamW.

    Of the whole batch only a share of the chunks is run, with the composition of all (`lengths.share`): GradCache's
    time is proportional to them and its memory is that of one. The other texts' vectors are random, so that the loss
    and its memory are those of the whole batch.
    """

    def start(self) -> None:
        """See `Contestant`."""
        self.encoder.train()
        self.trained = [p for p in self.encoder.parameters() if p.requires_grad]
        o = self.config["objective"]
        self.optimizer = torch.optim.AdamW(self.trained, lr=o["lr"], weight_decay=o["weight_decay"])
        plan = ChunkPlan(self.budget, self.most, self.config["trainer"]["gradcache"])
        self.step = LargeBatch(self.encoder, self.tokenizer, plan, self.config["seed"])

    def work(self, texts: Texts) -> None:
        """See `Contestant`."""
        self.loss = self.step.backward(texts.rows, self._loss_of(texts), step=0)
        torch.nn.utils.clip_grad_norm_(self.trained, self.config["trainer"]["gradient_clip"])
        self.optimizer.step()
        self.optimizer.zero_grad()

    def _loss_of(self, texts: Texts) -> Callable[[Tensor], Tensor]:
        queries = texts.whole // 3
        place = torch.randperm(texts.whole, device=self.card.device)

        def loss_of(vectors: Tensor) -> Tensor:
            rest = torch.randn(texts.whole - len(vectors), vectors.shape[1], device=vectors.device)
            all_of_them = torch.cat([vectors, rest])[place]
            masked = torch.zeros(queries, texts.whole - queries, dtype=torch.bool, device=vectors.device)
            temperature = self.config["objective"]["temperature"]
            return infonce(all_of_them[:queries], all_of_them[queries:], masked, temperature)

        return loss_of


class Encoding(Contestant):
    """`TextEncoder.encode` up to float32 vectors in numpy; LoRA stays apart, as a bf16 run is loaded."""

    def start(self) -> None:
        """See `Contestant`."""
        self.text_encoder = TextEncoder(self.encoder.eval(), self.tokenizer, "", self.budget)

    def work(self, texts: Texts) -> None:
        """See `Contestant`."""
        self.tokenizer.rows = texts.rows
        self.vectors = self.text_encoder.encode([str(i) for i in range(len(texts.rows))])
