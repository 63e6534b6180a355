"""The cost of a run, counted from shapes: floating-point operations, and `check=true`, which reads no weights."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel

from encoders.adapter import add_adapter, in_adapter, mixing_of
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import set_attention
from encoders.backbone import empty_backbone
from encoders.encoder import Encoder
from encoders.layers import parts
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


def expert_parameters(backbone: PreTrainedModel) -> dict[str, int]:
    """Return the parameters of all experts, and those of the adapter that a token meets; empty for one LoRA."""
    mixture = mixture_of(backbone)
    if mixture is None:
        return {}
    experts = sum(p.numel() for name, p in backbone.named_parameters() if ".lora_" in name)
    mixing, router = mixture.mixing, sum(p.numel() for p in mixture.parameters())
    return {"experts": experts, "active": experts * mixing.active // mixing.experts + router}


@dataclass(frozen=True)
class Facts:
    """A run counted. base, adapter, head: numbers of parameters, the trained ones of the adapter.

    experts: of a mixture. targets: the linear layers of each layer with LoRA. rows: texts of a step at most.
    """

    base: int
    adapter: int
    head: int
    experts: dict[str, int]
    targets: list[Counter]
    rows: int
    embedding_dim: int


def facts(config: Config) -> Facts:
    """Build backbone, LoRA and pooler of `config` without memory. Raises `UserError` for what would stop the run."""
    encoder, objective = empty_encoder(config), objective_class(config["objective"]["name"])
    assert issubclass(objective, Objective)
    objective.check_width(config["objective"], encoder.pooler.embedding_dim)
    head = sum(p.numel() for p in encoder.pooler.parameters())
    layers, _ = parts(encoder.backbone)
    return Facts(
        base=sum(p.numel() for name, p in encoder.backbone.named_parameters() if not in_adapter(name)),
        adapter=sum(p.numel() for p in encoder.parameters() if p.requires_grad) - head,
        head=head,
        experts=expert_parameters(encoder.backbone),
        targets=[
            Counter(name.rsplit(".", 1)[-1] for name, m in layer.named_modules() if hasattr(m, "lora_A"))
            for layer in layers
        ],
        rows=config["trainer"]["global_batch_size"] * objective.texts_per_example(config["objective"]),
        embedding_dim=encoder.pooler.embedding_dim,
    )


def check(config: Config) -> None:
    """Print what the run of `config` would be. Raises `UserError` for what would stop it."""
    print("\n".join(f"{name:<12}{text}" for name, text in described(config, facts(config))))


def described(config: Config, f: Facts) -> list[tuple[str, str]]:
    """Return (name, text) lines. FLOPs are those of texts that all have `max_length` tokens."""
    t, length = config["trainer"], config["max_length"]
    batch, steps, devices = t["global_batch_size"], t["max_steps"], t["devices"] * t["num_nodes"]
    texts = f.rows * steps
    flops = training_flops(config).of(Work(texts, texts, texts * length, texts * length**2))
    device = best_device(config["accelerator"]).type
    rate = RATE.get(device, RATE["cpu"])
    hours, each = flops / rate / devices / 3600, f"{rate / TERA:g} TFLOP/s on {devices} x {device}"
    return [
        ("model", f"{config['model']['path']}: {len(f.targets)} layers, attn={config['attn']['name']}"),
        ("base", f"{f.base:,} parameters, frozen"),
        ("adapter", f"{f.adapter:,} parameters: {_mixture_text(config, f)}{_targets_text(f.targets)}"),
        ("head", f"{f.head:,} parameters ({config['pooler']['name']})"),
        ("embedding", f"{f.embedding_dim} dimensions"),
        ("steps", f"{steps:,} of {batch:,} examples (at most {f.rows:,} texts): {steps * batch:,} examples seen"),
        ("FLOPs", f"at most {flops:.3g}, with {length} tokens in each text"),
        ("time", f"at most {hours:.2g} h at a rate of {each}"),
    ]


def _mixture_text(config: Config, f: Facts) -> str:
    """The experts and how many of them a token meets, before their layers; "" for one LoRA."""
    if not f.experts:
        return ""
    mixing, trains = mixing_of(config["adapter"]), config["adapter"]["trains"]
    what = f"{mixing.experts} experts of {f.experts['experts']:,}, {mixing.active} of them for a token"
    return f"{what} ({f.experts['active']:,}), router={mixing.router}, trains={trains}; "


def _targets_text(targets: Sequence[Counter]) -> str:
    if not any(targets):
        return "none, the backbone stays as it is"
    kinds = Counter(tuple(sorted(c.items())) for c in targets)
    return "; ".join(
        f"{', '.join(f'{n} {k}' if n > 1 else k for k, n in kind)} in {many} layers" for kind, many in kinds.items()
    )
