"""A training step that is timed: tokenise, forward, InfoNCE, backward, clip, AdamW; and ours as the first of them."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from peft import LoraConfig
from torch import Tensor, nn

from benchmarks.speed.work import texts_of
from corpora.triples import Triple
from encoders.adapter import add_adapter
from encoders.encoder import Encoder
from encoders.loading import build_encoder, build_tokenizer
from encoders.precision import resolve_precision
from encoders.tokens import TextTokenizer
from records.streams import stream_seed
from training.large_batch import ChunkPlan, LargeBatch
from training.objectives.infonce import candidates, infonce

CPU = torch.device("cpu")
PLACE = re.compile(r"(layers\.\d+\.|pooler\.)")  # from here on, a parameter's name is the same in every trainer


class Step(ABC):
    """A loop around model, loss and optimiser without loggers, callbacks or checkpoints: the same for all trainers."""

    def __init__(self, module: nn.Module, config: dict[str, Any]) -> None:
        self.module, self.config = module.train(), config
        o = config["objective"]
        self.trained = [p for p in module.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=o["lr"], weight_decay=o["weight_decay"])

    @abstractmethod
    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """Add the gradient of the loss on `batch` to the parameters; return the loss and the number of real tokens."""

    def __call__(self, batch: Sequence[Triple]) -> float:
        """One full step; return the number of real tokens."""
        _, tokens = self.backward(batch)
        torch.nn.utils.clip_grad_norm_(self.trained, self.config["trainer"]["gradient_clip"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(tokens)

    def without_dropout(self, batch: Sequence[Triple]) -> tuple[float, dict[str, Tensor]]:
        """Loss and gradients by name; parameters stay as they are."""
        self.module.eval()
        loss, _ = self.backward(batch)
        gradients = {name: p.grad.clone() for name, p in trained(self.module).items() if p.grad is not None}
        self.optimizer.zero_grad()
        self.module.train()
        return loss.item(), gradients


def trained(module: nn.Module) -> dict[str, nn.Parameter]:
    """The trained parameters by the part of their names that all trainers share."""
    parameters = {}
    for name, p in module.named_parameters():
        if p.requires_grad:
            place = PLACE.search(name)
            assert place, name
            parameters[name[place.start() :]] = p
    return parameters


@torch.no_grad()
def start_alike(source: Step, *others: Step) -> None:
    """Give all of them the adapter and head of `source`, whose LoRA is moved off zero first: there it does nothing."""
    draw = torch.Generator().manual_seed(stream_seed(0, "benchmark"))
    wanted = trained(source.module)
    for name, p in wanted.items():
        if "lora_B" in name:
            p.copy_(torch.randn(p.shape, generator=draw) * 0.02)
    for other in others:
        parameters = trained(other.module)
        assert parameters.keys() == wanted.keys(), sorted(parameters.keys() ^ wanted.keys())[:4]
        for name, p in parameters.items():
            p.copy_(wanted[name])


def encoder_of(config: dict[str, Any]) -> tuple[Encoder, TextTokenizer]:
    """Encoder and tokenizer of `config`, on the CPU, without LoRA."""
    encoder = build_encoder(config, resolve_precision(config["precision"], CPU), CPU)
    return encoder, build_tokenizer(config, encoder.backbone.config.get_text_config().max_position_embeddings)


def lora_config(lora: dict[str, Any]) -> LoraConfig:
    """LoRA as PEFT itself computes it, for the others."""
    return LoraConfig(
        r=lora["r"], lora_alpha=lora["alpha"], lora_dropout=lora["dropout"], target_modules=lora["targets"]
    )


class OurStep(Step):
    """The step of `training/module.py`, without Lightning."""

    def __init__(self, config: dict[str, Any]) -> None:
        encoder, self.tokenizer = encoder_of(config)
        add_adapter(encoder.backbone, config, stream_seed(config["seed"], "adapter"))
        t = config["trainer"]
        plan = ChunkPlan(config["token_budget"], t["chunk_size"], t["gradcache"], graph_tokens=t["graph_tokens"])
        self.work = LargeBatch(encoder, self.tokenizer, plan, config["seed"])
        self.number = 0
        super().__init__(encoder, config)

    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """See `Step`."""
        o = self.config["objective"]
        layout = candidates(batch, None, o["hard_negatives"], o["mask_duplicates"])
        rows = self.tokenizer.pairs(layout.texts)

        def loss_of(vectors: Tensor) -> Tensor:
            return infonce(vectors[layout.queries], vectors[layout.documents], layout.masked, o["temperature"])

        self.number += 1
        return self.work.backward(rows, loss_of, self.number), sum(map(len, rows))

    def lengths(self, batch: Sequence[Triple]) -> list[int]:
        """Real tokens of each text of a batch."""
        return list(map(len, self.tokenizer(texts_of(batch))))
