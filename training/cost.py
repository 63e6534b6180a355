"""The cost of a run, counted from shapes: floating-point operations, and `check=true`, which reads no weights."""

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import torch

from encoders.adapter import add_adapter, in_adapter
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import set_attention
from encoders.backbone import empty_backbone
from encoders.encoder import Encoder
from encoders.mixse import mixture_of
from encoders.precision import best_device, resolve_precision
from encoders.routers import experts_of
from encoders.tokens import Batch, check_positions
from poolers.shared.registry import build_pooler
from training.flops import Polynomial, Work, flop_counter, polynomials
from training.objectives.objective import Objective, objective_class

Config = dict[str, Any]
TERA = 1e12
RATE = {"cuda": 200 * TERA, "cpu": 0.05 * TERA}  # FLOP/s: of a large GPU in bf16; of one thread of a processor


@dataclass(frozen=True)
class TrainingFlops:
    """FLOPs of a chunk: forward, and with backward. again: how often GradCache and checkpointing repeat the first."""

    forward: Polynomial
    both: Polynomial
    again: int

    def of(self, work: Work, spared: Work | None = None) -> float:
        """FLOPs of training on `work`; spared: the part of it that GradCache does not run a second time."""
        return self.both(work) + self.again * self.forward(work) - (self.forward(spared) if spared else 0.0)


def training_flops(config: Config) -> TrainingFlops:
    """Count on a few tokens, as `polynomials` says. The optimiser is not counted."""
    trainer = config["trainer"]
    encoder = empty_encoder({**config, "model": {**config["model"], "attn_implementation": "eager"}})
    forward, both = polynomials(encoder, partial(_count, encoder, cached=config["backbone"]["frozen"]))
    checkpointed = trainer["gradient_checkpointing"] and not config["backbone"]["frozen"]
    return TrainingFlops(forward, both, int(trainer["gradcache"]) + int(checkpointed))


def _count(encoder: Encoder, batch: Batch, cached: bool) -> tuple[int, int]:
    """FLOPs of the forward pass of `batch`, and of forward and backward together.

    cached: whether the backbone's states are read from disk, so that a step costs the head's part alone.
    """
    with flop_counter() as counter:
        vectors = encoder(batch)
        forward = counter.get_total_flops()
        vectors.sum().backward()
    saved = 0
    if cached:
        with flop_counter() as backbone, torch.no_grad():
            encoder.run_backbone(batch)
        saved = backbone.get_total_flops()
    return forward - saved, counter.get_total_flops() - saved


def empty_encoder(config: Config) -> Encoder:
    """Return the encoder of `config` on the meta device, LoRA added, in training mode; no weights are read."""
    precision = resolve_precision(config["precision"], best_device(config["accelerator"]))
    backbone = empty_backbone(config["model"], precision.weights)
    shape = backbone.config.get_text_config()
    check_positions(config, shape.max_position_embeddings)
    set_attention(backbone, pattern_of(config["attn"]))
    with torch.device("meta"):
        if not config["backbone"]["frozen"]:
            add_adapter(backbone, config, seed=0)
        sizes = (shape.hidden_size, shape.num_hidden_layers)
        pooler = build_pooler(config["pooler"], *sizes, seed=0, experts=experts_of(backbone))
    return Encoder(backbone, pooler, config["pooler"]["normalize"], precision.compute).train()


def parameters(encoder: Encoder) -> dict[str, int]:
    """Return numbers of parameters: adapter and head, those that train, and base; of a mixture of experts its own.

    experts: of all of them together; active: those of the adapter that a token meets.
    """
    backbone = encoder.backbone
    numbers = {
        "adapter": sum(p.numel() for p in backbone.parameters() if p.requires_grad),
        "head": sum(p.numel() for p in encoder.pooler.parameters() if p.requires_grad),
        "base": sum(_weights(p) for name, p in backbone.named_parameters() if not in_adapter(name)),
    }
    if (mixture := mixture_of(backbone)) is None:
        return numbers
    experts = sum(p.numel() for name, p in backbone.named_parameters() if ".lora_" in name)
    mixing, router = mixture.mixing, sum(p.numel() for p in mixture.parameters())
    return {**numbers, "experts": experts, "active": experts * mixing.active // mixing.experts + router}


def _weights(parameter: torch.Tensor) -> int:
    """The number of weights of a parameter; of one in four bits those that it stands for."""
    state = getattr(parameter, "quant_state", None)
    return parameter.numel() if state is None else prod(state.shape)


def check(config: Config) -> None:
    """Print what the run of `config` would be, without weights or data. Raises `UserError` for what would stop it.

    FLOPs are those of texts that all have `max_length` tokens.
    """
    t, length, device = config["trainer"], config["max_length"], best_device(config["accelerator"]).type
    encoder, objective = empty_encoder(config), objective_class(config["objective"]["name"])
    assert issubclass(objective, Objective)
    objective.check_width(config["objective"], encoder.pooler.embedding_dim)
    numbers = ", ".join(f"{key} {n:,}" for key, n in parameters(encoder).items())
    batch, steps, devices = t["global_batch_size"], t["max_steps"], t["devices"] * t["num_nodes"]
    texts = steps * batch * objective.texts_per_example(config["objective"])
    flops = training_flops(config).of(Work(texts, texts, texts * length, texts * length**2))
    rate = RATE.get(device, RATE["cpu"])
    lines = {
        "model": f"{config['model']['path']}, attn={config['attn']['name']}, pooler={config['pooler']['name']}",
        "parameters": numbers,
        "embedding": f"{encoder.pooler.embedding_dim} dimensions",
        "steps": f"{steps:,} of {batch:,} examples, at most {texts:,} texts in all",
        "FLOPs": f"at most {flops:.3g}, with {length} tokens in each text",
        "time": f"at most {flops / rate / devices / 3600:.2g} h at {rate / TERA:g} TFLOP/s on {devices} x {device}",
    }
    print("\n".join(f"{name:<12}{text}" for name, text in lines.items()))
