"""`check=true`: a study composed and counted without weights, data or hub, on tensors that have shapes only."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from cli.errors import UserError
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import set_attention
from encoders.backbone import empty_backbone
from encoders.encoder import Encoder
from encoders.layers import parts
from encoders.lora import add_lora
from encoders.precision import best_device, resolve_precision
from encoders.routers import experts_of
from encoders.tokens import Batch
from poolers.shared.base import TEXT
from poolers.shared.registry import build_pooler
from training.objectives.objective import Objective, objective_class


@dataclass(frozen=True)
class DryRun:
    """embedding_dim: E. dtype: of the vectors. layer_bytes: the states [B, T, D] of one layer.

    saved_bytes: the tensors that autograd keeps for the backward pass of one chunk, parameters apart.
    """

    embedding_dim: int
    dtype: torch.dtype
    saved_bytes: int
    layer_bytes: int


class _GroupedInAnyFormat(TorchFunctionMode):
    """Within it, grouped products of tensors without memory have a shape in every format; torch knows bf16 alone.

    transformers' own fallback stands in, which keeps the same tensors for the backward pass.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call `func`, or the fallback in its place."""
        kwargs = kwargs or {}
        if func is torch._grouped_mm and args[0].dtype is not torch.bfloat16:
            return torch.ops.transformers.grouped_mm_fallback(args[0], args[1], kwargs["offs"])
        return func(*args, **kwargs)


def dry_runs(encoder: Encoder, chunks: Sequence[tuple[int, int]]) -> list[DryRun]:
    """Run each chunk of [texts, tokens] through `encoder`, whose parameters are on the meta device, and count.

    Kernels are the CPU's: a GPU's attention keeps about as much. The encoder's parameters are fake afterwards.
    """
    with FakeTensorMode(allow_non_fake_inputs=True):
        encoder.to_empty(device=torch.device("cpu"))
        return [_dry_run(encoder, *chunk) for chunk in chunks]


def _dry_run(encoder: Encoder, texts: int, length: int) -> DryRun:
    own = {p.untyped_storage()._cdata for p in encoder.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}  # holds the storages, so that no identity is used twice

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage
        return tensor

    roles = torch.full((texts, length), TEXT)
    positions = torch.arange(length).expand(texts, length)
    with _GroupedInAnyFormat(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        vectors = encoder(Batch(roles, roles, positions))
    width = encoder.pooler.hidden_size
    item = encoder.compute.itemsize
    saved = sum(storage.nbytes() for storage in kept.values())
    return DryRun(vectors.shape[1], vectors.dtype, saved, texts * length * width * item)


Config = dict[str, Any]
GIB = 2**30
SHORT = 16  # tokens of a short query: where nothing else bounds them, so many go into a chunk


@dataclass(frozen=True)
class Facts:
    """A run counted. base, adapter, head: numbers of parameters.

    targets: the linear layers that LoRA adapts, for each decoder layer. rows, chunks: texts and forward passes of a
    step over all processes, if no text occurs twice and all have full length.
    """

    layers: int
    base: int
    adapter: int
    head: int
    targets: list[Counter]
    rows: int
    chunks: int
    chunk: tuple[int, int]  # texts, tokens of each
    crowd: tuple[int, int]  # the chunk of the most texts: a head's activations grow with texts, not with tokens
    base_bytes: int
    trained_bytes: int
    run: DryRun
    crowd_bytes: int  # as run.saved_bytes, of the crowd; 0 where no head is trained


def check(config: Config) -> None:
    """Print what the run of `config` would be. Raises `UserError` for what would stop it."""
    print("\n".join(f"{name:<12}{text}" for name, text in described(config, facts(config))))


def facts(config: Config) -> Facts:
    """Build backbone, LoRA and pooler of `config` without memory and run one chunk through them."""
    encoder = empty_encoder(config)
    objective = objective_class(config["objective"]["name"])
    assert issubclass(objective, Objective)
    objective.check_width(config["objective"], encoder.pooler.embedding_dim)
    layers, _ = parts(encoder.backbone)
    trained = [p for p in encoder.parameters() if p.requires_grad]
    base = [p for p in encoder.backbone.parameters() if not p.requires_grad]
    head = sum(p.numel() for p in encoder.pooler.parameters())
    rows, chunk, chunks = _work(config, objective)
    crowd = _crowd(config, rows)
    base_bytes, trained_bytes = (sum(p.numel() * p.element_size() for p in own) for own in (base, trained))
    run, *with_crowd = dry_runs(encoder, [chunk, crowd] if head else [chunk])
    return Facts(
        layers=len(layers),
        base=sum(p.numel() for p in base),
        adapter=sum(p.numel() for p in trained) - head,
        head=head,
        targets=[_targets(layer) for layer in layers],
        rows=rows,
        chunks=chunks,
        chunk=chunk,
        crowd=crowd,
        base_bytes=base_bytes,
        trained_bytes=trained_bytes,
        run=run,
        crowd_bytes=with_crowd[0].saved_bytes if head else 0,
    )


def described(config: Config, f: Facts) -> list[tuple[str, str]]:
    """Return (name, text) lines."""
    t, run = config["trainer"], f.run
    batch, steps, devices = t["global_batch_size"], t["max_steps"], t["devices"]
    texts, length = f.chunk
    activations = run.saved_bytes
    if t["gradient_checkpointing"] and f.adapter:  # the inputs of all layers, and one layer at a time
        activations = activations // f.layers + f.layers * run.layer_bytes
    activations += max(0, f.crowd_bytes - run.saved_bytes)  # a head on many short texts
    chunks = -(-f.chunks // devices)
    kind = "texts" if f.rows == batch else "queries"
    if t["gradcache"]:
        chunks = min(chunks, max(1, -(-t["graph_tokens"] // (texts * length))))
    kept = activations * chunks
    fixed = f.base_bytes + 4 * f.trained_bytes  # weights; trained ones also have a gradient and AdamW's two moments
    return [
        ("model", f"{config['model']['path']}: {f.layers} layers, attn={config['attn']['name']}"),
        *([("lineage", f"{', '.join(config['lineage'])} (not read here)")] if config.get("lineage") else []),
        ("base", f"{f.base:,} parameters, frozen, {f.base_bytes / GIB:.2f} GiB"),
        ("adapter", f"{f.adapter:,} parameters: {_targets_text(f.targets)}"),
        ("head", f"{f.head:,} parameters ({config['pooler']['name']})"),
        ("embedding", f"{run.embedding_dim} dimensions, {run.dtype}"),
        (
            "steps",
            f"{steps:,} of {batch:,} {kind} ({f.rows:,} texts): {steps * batch:,} examples seen",
        ),
        ("chunks", f"at most {f.chunks:,} a step over {devices} processes, {texts} texts of {length} tokens each"),
        (
            "memory",
            f"weights, gradients, AdamW {fixed / GIB:.2f} GiB; activations kept about {kept / GIB:.2f} GiB a process",
        ),
    ]


def empty_encoder(config: Config) -> Encoder:
    """Return the encoder of `config` on the meta device, LoRA added, in training mode; no weights are read."""
    precision = resolve_precision(config["precision"], best_device(config["accelerator"]))
    backbone = empty_backbone(config["model"], precision.weights)
    shape = backbone.config.get_text_config()
    if config["max_length"] > shape.max_position_embeddings:
        raise UserError(
            f"max_length={config['max_length']} is more than the {shape.max_position_embeddings} positions of "
            f"{config['model']['path']}. Lower max_length."
        )
    set_attention(backbone, pattern_of(config["attn"]))
    with torch.device("meta"):
        if not config["backbone"]["frozen"]:
            add_lora(backbone, config["lora"], seed=0)
        experts = experts_of(backbone)
        pooler = build_pooler(config["pooler"], shape.hidden_size, shape.num_hidden_layers, seed=0, experts=experts)
    return Encoder(backbone, pooler, config["pooler"]["normalize"], precision.compute).train()


def _targets(layer: torch.nn.Module) -> Counter:
    """The linear layers of a decoder layer that LoRA adapts, by name."""
    return Counter(name.rsplit(".", 1)[-1] for name, m in layer.named_modules() if hasattr(m, "lora_A"))


def _work(config: Config, objective: type[Objective]) -> tuple[int, tuple[int, int], int]:
    """Texts of a step, (texts, tokens) of a chunk, and chunks of a step, if every text is distinct and full length."""
    rows = config["trainer"]["global_batch_size"] * objective.texts_per_example(config["objective"])
    texts = max(1, config["token_budget"] // config["max_length"])
    texts = min(texts, config["trainer"]["chunk_size"] or texts, rows)
    return rows, (texts, config["max_length"]), -(-rows // texts)


def _crowd(config: Config, rows: int) -> tuple[int, int]:
    """(texts, tokens) of a chunk of short texts."""
    budget = config["token_budget"]
    texts = max(1, min(config["trainer"]["chunk_size"] or budget // SHORT, budget // SHORT, rows))
    return texts, min(budget // texts, config["max_length"])


def _targets_text(targets: list[Counter]) -> str:
    if not any(targets):
        return "none, the backbone stays as it is"
    kinds = Counter(tuple(sorted(c.items())) for c in targets)
    return "; ".join(
        f"{', '.join(f'{n} {k}' if n > 1 else k for k, n in kind)} in {many} layers" for kind, many in kinds.items()
    )
