"""`check=true`: a study composed and counted without weights, data or hub, on tensors that have shapes only."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from encoders import loading
from encoders.adapter import expert_parameters, in_adapter, mixing_of
from encoders.attention.layout import one_text_each
from encoders.cost.memory import GroupedInAnyFormat
from encoders.encoder import Encoder
from encoders.layers import parts
from encoders.precision import best_device, resolve_precision
from encoders.quantised import frozen_bytes
from encoders.tokens import check_positions
from poolers.shared.base import TEXT
from training.objectives.objective import Objective, objective_class

Config = dict[str, Any]
GIB = 2**30
SHORT = 16  # tokens of a short query: where nothing else bounds them, so many go into a chunk


@dataclass(frozen=True)
class Facts:
    """A run counted. base, adapter, head: numbers of parameters, the trained ones of the adapter.

    experts: of a mixture. targets: the linear layers of each layer with LoRA. rows, chunks: texts and forward passes of
    a step over all processes, if no text occurs twice and all have full length. chunk: texts, and tokens of each.
    crowd: the same of the chunk of most texts, with which a head's activations grow. base_bytes: of all that is frozen;
    gathered_bytes: of two layers and what is in none, which stand whole at a time where the base is shared out.
    saved_bytes, crowd_bytes: what autograd keeps of either for the backward pass, parameters apart; 0 for the crowd
    where there is no head. layer_bytes: a layer's states of the chunk. dtype: of the vectors.
    """

    layers: int
    base: int
    adapter: int
    head: int
    experts: dict[str, int]
    targets: list[Counter]
    rows: int
    chunks: int
    chunk: tuple[int, int]
    crowd: tuple[int, int]
    base_bytes: int
    gathered_bytes: int
    trained_bytes: int
    embedding_dim: int
    dtype: torch.dtype
    saved_bytes: int
    crowd_bytes: int
    layer_bytes: int


def _dry_run(encoder: Encoder, chunk: tuple[int, int]) -> tuple[Tensor, int]:
    """The vectors of a chunk of (texts, tokens) without memory, and the bytes that autograd keeps, parameters apart."""
    parameters = {p.untyped_storage()._cdata for p in encoder.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}  # holds the storages, so that no identity is used twice

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in parameters:
            kept[storage._cdata] = storage
        return tensor

    with GroupedInAnyFormat(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        vectors = encoder(one_text_each(torch.full(chunk, TEXT)))
    return vectors, sum(storage.nbytes() for storage in kept.values())


def check(config: Config) -> None:
    """Print what the run of `config` would be. Raises `UserError` for what would stop it."""
    print("\n".join(f"{name:<12}{text}" for name, text in described(config, facts(config))))


def facts(config: Config) -> Facts:
    """Build backbone, LoRA and pooler of `config` without memory and run one chunk through them.

    Kernels are the CPU's: a GPU's attention keeps about as much.
    """
    encoder, t, length = empty_encoder(config), config["trainer"], config["max_length"]
    objective = objective_class(config["objective"]["name"])
    assert issubclass(objective, Objective)
    objective.check_width(config["objective"], encoder.pooler.embedding_dim)
    rows = t["global_batch_size"] * objective.texts_per_example(config["objective"])
    texts, short = (
        max(1, min(config["token_budget"] // tokens, t["chunk_size"] or rows, rows)) for tokens in (length, SHORT)
    )
    chunk, crowd = (texts, length), (short, min(config["token_budget"] // short, length))
    layers, _ = parts(encoder.backbone)
    trained = [p for p in encoder.parameters() if p.requires_grad]
    head = sum(p.numel() for p in encoder.pooler.parameters())
    base_bytes = frozen_bytes(encoder.backbone, config["model"].get("quantise"))
    of_layers = [frozen_bytes(layer, config["model"].get("quantise")) for layer in layers]
    trained_bytes = sum(p.numel() * p.element_size() for p in trained)
    with FakeTensorMode(allow_non_fake_inputs=True):
        encoder.to_empty(device=torch.device("cpu"))
        vectors, saved_bytes = _dry_run(encoder, chunk)
        crowd_bytes = _dry_run(encoder, crowd)[1] if head else 0
    return Facts(
        layers=len(layers),
        base=sum(p.numel() for name, p in encoder.backbone.named_parameters() if not in_adapter(name)),
        adapter=sum(p.numel() for p in trained) - head,
        head=head,
        experts=expert_parameters(encoder.backbone),
        targets=[
            Counter(name.rsplit(".", 1)[-1] for name, m in layer.named_modules() if hasattr(m, "lora_A"))
            for layer in layers
        ],
        rows=rows,
        chunks=-(-rows // texts),
        chunk=chunk,
        crowd=crowd,
        base_bytes=base_bytes,
        gathered_bytes=base_bytes - sum(of_layers) + sum(sorted(of_layers)[-2:]),
        trained_bytes=trained_bytes,
        embedding_dim=vectors.shape[1],
        dtype=vectors.dtype,
        saved_bytes=saved_bytes,
        crowd_bytes=crowd_bytes,
        layer_bytes=texts * length * encoder.pooler.hidden_size * encoder.compute.itemsize,
    )


def memory(config: Config, f: Facts, tokens: float | None = None) -> tuple[int, int]:
    """Return the bytes of weights, gradients and AdamW, and of the activations that are kept, of a process.

    tokens: of a step, over all processes, padding as it is run; None: as many as there can be.
    """
    t = config["trainer"]
    devices, (texts, length) = t["devices"] * t["num_nodes"], f.chunk
    activations = f.saved_bytes
    if t["gradient_checkpointing"] and f.adapter:  # the inputs of all layers, and one layer at a time
        activations = activations // f.layers + f.layers * f.layer_bytes
    activations += max(0, f.crowd_bytes - f.saved_bytes)  # a head on many short texts
    chunks: float = -(-f.chunks // devices)
    if tokens is not None:
        chunks = min(chunks, max(1.0, tokens / devices / (texts * length)))
    if t["gradcache"]:
        chunks = min(chunks, max(1, -(-t["graph_tokens"] // (texts * length))))
    base = f.base_bytes
    if t["shard_base"]:  # and what is whole at a time: two layers, the tokens' vectors and all else that is no layer's
        base = min(base, base // devices + f.gathered_bytes)
    fixed = base + 4 * f.trained_bytes  # weights; trained ones also have a gradient and AdamW's two moments
    return fixed, round(activations * chunks)


def described(config: Config, f: Facts) -> list[tuple[str, str]]:
    """Return (name, text) lines."""
    t = config["trainer"]
    batch, steps, devices = t["global_batch_size"], t["max_steps"], t["devices"] * t["num_nodes"]
    texts, length = f.chunk
    kind = "texts" if f.rows == batch else "queries"
    fixed, kept = memory(config, f)
    return [
        ("model", f"{config['model']['path']}: {f.layers} layers, attn={config['attn']['name']}"),
        *([("lineage", f"{', '.join(config['lineage'])} (not read here)")] if config.get("lineage") else []),
        *([("start", f"{', '.join(config['lora']['start'])} (not read here)")] if config["lora"]["start"] else []),
        ("base", f"{f.base:,} parameters, frozen, {f.base_bytes / GIB:.2f} GiB"),
        ("adapter", f"{f.adapter:,} parameters: {_mixture_text(config, f)}{_targets_text(f.targets)}"),
        ("head", f"{f.head:,} parameters ({config['pooler']['name']})"),
        ("embedding", f"{f.embedding_dim} dimensions, {f.dtype}"),
        ("steps", f"{steps:,} of {batch:,} {kind} ({f.rows:,} texts): {steps * batch:,} examples seen"),
        ("chunks", f"at most {f.chunks:,} a step over {devices} processes, {texts} texts of {length} tokens each"),
        (
            "memory",
            f"tensors per process: weights, gradients, AdamW {fixed / GIB:.2f} GiB; activations kept about "
            f"{kept / GIB:.2f} GiB",
        ),
    ]


def empty_encoder(config: Config) -> Encoder:
    """Return the encoder of `config` on the meta device, LoRA added, in training mode; no weights are read."""
    precision = resolve_precision(config["precision"], best_device(config["accelerator"]))
    encoder = loading.empty_encoder(config, precision, adapted=not config["backbone"]["frozen"])
    check_positions(config, encoder.backbone.config.get_text_config().max_position_embeddings)
    return encoder.train()


def _mixture_text(config: Config, f: Facts) -> str:
    """The experts and how many of them a token meets, before their layers; "" for one LoRA."""
    if not f.experts:
        return ""
    mixing, trains = mixing_of(config["adapter"]), config["adapter"]["trains"]
    what = f"{mixing.experts} experts of {f.experts['experts']:,}, {mixing.active} of them for a token"
    return f"{what} ({f.experts['active']:,}), router={mixing.router}, trains={trains}; "


def _targets_text(targets: list[Counter]) -> str:
    if not any(targets):
        return "none, the backbone stays as it is"
    kinds = Counter(tuple(sorted(c.items())) for c in targets)
    return "; ".join(
        f"{', '.join(f'{n} {k}' if n > 1 else k for k, n in kind)} in {many} layers" for kind, many in kinds.items()
    )
