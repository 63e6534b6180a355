"""The cost of a run, counted from shapes: floating-point operations, and `check=true`, which reads no weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from encoders.adapter import add_adapter, in_adapter
from encoders.attention.pattern import pattern_of
from encoders.attention.prepending import prepend
from encoders.attention.switch import one_text_each, parts, set_attention
from encoders.backbone import empty_backbone
from encoders.encoder import Encoder, experts_of
from encoders.mixse import mixture_of
from encoders.precision import best_device, resolve_precision
from encoders.templates import template_of
from encoders.tokens import check_positions
from poolers.shared.base import TEXT
from poolers.shared.registry import build_pooler
from training.objectives.objective import objective_class

Config = dict[str, Any]
TERA = 1e12
RATE = {"cuda": 200 * TERA, "cpu": 0.05 * TERA}  # FLOP/s: of a large GPU in bf16; of one thread of a processor


@dataclass(frozen=True)
class TrainingFlops:
    """FLOPs of a token: forward, and with backward. again: how often GradCache and checkpointing repeat the first."""

    forward: float
    both: float
    again: int

    def of(self, tokens: int, spared: int = 0) -> float:
        """FLOPs of training on `tokens`, padding as it is run; spared: those that GradCache does not run again."""
        return (self.both + self.again * self.forward) * tokens - self.forward * spared


def training_flops(config: Config) -> TrainingFlops:
    """Count the products of a text of half `max_length`, which stands for all: attention is a small part of them.

    A multiplication with its addition is two operations; norms, activations and the optimiser are not counted. The
    encoder has no memory, and the eager kernel, which computes the same products as any.
    """
    trainer, frozen, length = config["trainer"], config["backbone"]["frozen"], config["max_length"] // 2
    encoder = empty_encoder({**config, "model": {**config["model"], "attn_implementation": "eager"}})
    encoder.eval()  # dropout costs no products, and would draw from the global generator
    encoder.backbone.bfloat16()  # as many products; without memory, those of experts know no float32
    with FakeTensorMode(allow_non_fake_inputs=True):
        encoder.to_empty(device=torch.device("cpu"))
        batch = one_text_each(torch.full((1, length), TEXT))
        with flop_counter() as counter:
            vectors = encoder(batch)
            forward = counter.get_total_flops()
            if vectors.requires_grad:  # a mixture whose router was drawn trains nothing
                vectors.sum().backward()
        with flop_counter() as backbone, torch.no_grad():
            if frozen:
                encoder.run_backbone(batch)
    both, cached = counter.get_total_flops(), backbone.get_total_flops()
    checkpointed = trainer["gradient_checkpointing"] and not frozen
    again = int(trainer["gradcache"]) + int(checkpointed)
    return TrainingFlops((forward - cached) / length, (both - cached) / length, again)


def _product(a: Sequence[int], b: Sequence[int], *_: Any, **__: Any) -> int:
    """FLOPs of [m, k] x [k, n], or of a mixture's: [rows, k] x [experts, k, n], by expert [m, rows] x [rows, n]."""
    return 2 * prod(a) * b[-1]


# on top of what torch's counter knows; addmm_ adds in place to its first argument
COUNTED = {torch.ops.aten._grouped_mm: _product, torch.ops.aten.addmm_: lambda _, *shapes, **k: _product(*shapes, **k)}


def flop_counter() -> FlopCounterMode:
    """torch's counter, with the products that it does not know."""
    return FlopCounterMode(display=False, custom_mapping=COUNTED)


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
    return Encoder(backbone, pooler, config["normalize"], precision.compute).train()


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
    t, length = config["trainer"], config["max_length"]
    gpu = config["accelerator"] in ("gpu", "cuda")
    device = "cuda" if gpu else best_device(config["accelerator"]).type  # a GPU's hours on any machine
    config = {**config, "accelerator": "auto"}
    encoder, objective = empty_encoder(config), objective_class(config["objective"]["name"])
    objective.check_width(config["objective"], encoder.pooler.embedding_dim)
    prepend(encoder.backbone, parts(encoder.backbone)[0], template_of(config).prepended)  # refuses too many layers
    numbers = ", ".join(f"{key} {n:,}" for key, n in parameters(encoder).items())
    batch, steps, devices = t["global_batch_size"], t["max_steps"], t["devices"] * t["num_nodes"]
    epoch = steps is None  # of how many steps the data alone say
    many, each, whole = ("an epoch's,", " a step", "each") if epoch else (f"{steps:,}", "", "in all")
    texts = (1 if epoch else steps) * batch * objective.texts_per_example(config["objective"])
    flops = training_flops(config).of(texts * length)
    rate, any_number = RATE[device], config["objective"].get("hard_negatives", 0) is None
    bound, of_each = ("about", ", one hard negative each") if any_number else ("at most", "")
    hours = flops / rate / devices / 3600
    lines = {
        "model": f"{config['model']['path']}, attn={config['attn']['name']}, pooler={config['pooler']['name']}",
        "parameters": numbers,
        "steps": f"{many} of {batch:,} examples{of_each}, {bound} {texts:,} texts {whole}",
        "FLOPs": f"{bound} {flops:.3g}{each}, with {length} tokens in each text",
        "time": f"{bound} {hours:.2g} h{each} at {rate / TERA:g} TFLOP/s on {devices} x {device}",
    }
    print("\n".join(f"{name:<12}{text}" for name, text in lines.items()))
