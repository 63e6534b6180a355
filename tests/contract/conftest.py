"""What the contract's tests share: cells composed once, encoders that are awake, and one real run of each cell."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from hashlib import sha256
from operator import getitem
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import save_file

from encoders import fused_lora, loading
from encoders.adapter import add_adapter
from encoders.attention.switch import is_unpadded
from encoders.backbone import load_config
from encoders.encoder import Encoder
from encoders.identity import base_fingerprints
from encoders.loading import build_encoder, build_tokenizer, load_run
from encoders.precision import PRECISIONS
from encoders.text_encoder import TextEncoder
from encoders.tokens import Batch, TextTokenizer
from poolers.shared.base import Pooler, RoutedStates, States, TokenView
from poolers.shared.registry import build_pooler
from records.files import stream_seed
from records.manifest import read_manifest, write_manifest
from tests.cells import reads_routers
from tests.triples import write_triples
from training import run as running
from training.cost import TrainingFlops, training_flops
from training.module import StepModule
from training.set_up import save_trained
from training.validation import Validation

TEXTS = [
    "the sum of two arrays",
    "a new array is returned with the same shape",
    "type",
    "the shape and the type of the first argument is the same as that of the sum of the two arrays returned",
    "two arrays of the same shape",
]
FLOAT32 = 2e-6  # entries of unit vectors; float32 sums in another order: measured 6e-7
NOTHING: Mapping = MappingProxyType({})
OF_A_RUN = {"study": "tests", "status": "finished", "data": {"instructed": 0}, "base_weights_sha256": "", "code": {}}


@pytest.fixture(scope="session")
def cell(compose_cell, tmp_path_factory) -> Callable[..., dict]:
    """Compose a quick cell, then change keys: cell("eos", "bi", {"precision": "bf16"}). Composed once: it is slow."""
    path = write_triples(tmp_path_factory.mktemp("data") / "triples.jsonl")
    quick = ["max_steps=2", "global_batch_size=8", "checkpoint_every=0", "progress=false"]
    words = [f"trainer.{q}" for q in quick] + ["data=jsonl", f"data.path='{path}'", "data.validation=4"]
    words += ["objective.warmup=1", "logging.tensorboard=false", "logging.csv=false"]
    once = cache(lambda pooler, attn: compose_cell(pooler, attn, *words))

    def changed(pooler: str, attn: str, changes: Mapping = NOTHING) -> dict:
        cfg = deepcopy(once(pooler, attn))
        for key, value in changes.items():
            *parents, last = key.split(".")
            owner = reduce(getitem, parents, cfg)
            assert last in owner, f"no key {key}"
            owner[last] = value
        return cfg

    return changed


def awake(encoder: Encoder) -> Encoder:
    """Move what starts at zero (LoRA's B, the last layer of an MLP), so that every parameter takes part."""
    for name, p in encoder.named_parameters():
        if "lora_B" in name or name.startswith("pooler."):
            noise = torch.randn(p.shape, generator=torch.Generator().manual_seed(stream_seed(1, name)))
            p.data.add_(0.05 * noise)
    return encoder


def adapted(cfg: dict, checkpointing: bool = False) -> tuple[Encoder, PeftModel]:
    """An awake encoder with LoRA, in training, as training.set_up builds it; and the PEFT model."""
    encoder, peft_model = deepcopy(shared_adapted(cfg))
    if checkpointing:
        encoder.backbone.gradient_checkpointing_enable({"use_reentrant": False})
        encoder.backbone.enable_input_require_grads()
    return encoder.train(), peft_model


def shared_adapted(cfg: dict) -> tuple[Encoder, PeftModel]:
    """The same for all tests, without gradients: nothing else than gradients may be changed."""
    encoder, peft_model = _adapted(json.dumps(cfg))
    encoder.zero_grad()
    return encoder.train(), peft_model


@cache
def _adapted(cfg_json: str) -> tuple[Encoder, PeftModel]:
    """Built once: copying is ten times as fast."""
    cfg = json.loads(cfg_json)
    encoder = build_encoder(cfg, PRECISIONS[cfg["precision"]], torch.device("cpu"))
    peft_model = add_adapter(encoder.backbone, cfg, stream_seed(cfg["seed"], "adapter"))
    return awake(encoder), peft_model


@pytest.fixture(scope="session")
def encoder_of(cell) -> Callable[..., tuple[Encoder, TextTokenizer]]:
    """An awake encoder without LoRA and its tokenizer, built once for all tests: not to be changed."""
    backbones: dict[tuple, Any] = {}
    passes: dict[tuple, dict[tuple, Any]] = {}

    @cache
    def build(pooler: str, attn: str, precision: str = "fp32", kernel: str = "eager", changes: tuple = ()):
        cfg = cell(pooler, attn, {"precision": precision, "model.attn_implementation": kernel, **dict(changes)})
        kind = cfg["model"]["path"], attn, precision, kernel, cfg["template"]["name"]
        with pytest.MonkeyPatch.context() as patch:
            if kind in backbones:  # its attention is proved
                patch.setattr(loading, "load_backbone", lambda *_: backbones[kind])
                patch.setattr(loading, "probe", lambda *_: None)
            encoder = build_encoder(cfg, PRECISIONS[precision], torch.device("cpu"))
        backbones[kind] = encoder.backbone
        share_passes(encoder, passes.setdefault(kind, {}))
        return awake(encoder).eval(), build_tokenizer(cfg, 128)

    return build


def share_passes(encoder: Encoder, passes: dict[tuple, Any]) -> None:
    """Run each batch once for all encoders of one backbone whose poolers consume the same.

    Batches are the same only where every id, role and position is, those of the padding too.
    """
    run, collect = encoder.run_backbone, encoder.collected

    def once(batch: Batch, kind: Any, make: Callable[[], Any]) -> Any:
        tensors = (batch.input_ids, batch.roles, batch.position_ids)
        key = *((t.shape, t.numpy().tobytes()) for t in tensors), kind
        if key not in passes:
            passes[key] = make()
        return passes[key]

    def collected(batch: Batch, poolers: Mapping[str, Pooler], packed: bool = False) -> dict[str, States]:
        if len(poolers) > 1 or encoder.pooler.consumes == "last":
            return collect(batch, poolers, packed)
        ((name, pooler),) = poolers.items()
        whole = Kept(pooler.consumes, range(pooler.num_layers))
        kind = pooler.consumes, packed and is_unpadded(encoder.backbone)
        states = once(batch, kind, lambda: collect(batch, {"": whole}, packed)[""])
        hidden = states.hidden if pooler.consumes == "routers" else states
        reduced = [pooler.reduce(layer, hidden[layer], batch.view) for layer in pooler.layers]
        if pooler.consumes == "layers":
            return {name: reduced}
        routing = [pooler.reduce_routing(k, logits, batch.view) for k, logits in enumerate(states.routing)]
        return {name: RoutedStates(reduced, routing)}

    encoder.run_backbone = lambda batch: once(batch, "last", lambda: run(batch))
    encoder.collected = collected


@dataclass(frozen=True)
class Kept:
    """Stands for a pooler that reduces nothing."""

    consumes: str
    layers: Sequence[int]

    def reduce(self, layer: int, states: Any, tokens: TokenView) -> Any:
        return states

    reduce_routing = reduce


@torch.no_grad()
def embed(encoder: Encoder, tokenizer: TextTokenizer, texts: list[str], multiple_of: int = 1) -> torch.Tensor:
    """[N, E] vectors of one batch."""
    return encoder(tokenizer.batch(tokenizer(texts), multiple_of))


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """Largest absolute difference of an entry."""
    assert one.shape == other.shape
    assert one.numel() > 0
    return float((one - other).abs().max())


def is_read(encoder: Encoder, name: str) -> bool:
    """Whether a parameter can move a vector: it is in no layer above the last that the pooler reads."""
    above = range(max(encoder.pooler.layers) + 1, encoder.pooler.num_layers)
    return not any(f"layers.{i}." in name for i in above)


@dataclass
class Run:
    """A real run and what was seen of it. start, first: copies before and after the first step."""

    cfg: dict
    folder: Path
    masks: list[str] = field(default_factory=list)  # sha256 of every dropout mask of the backbone, in order
    copies: list[Encoder] = field(default_factory=list)
    module: StepModule = None
    validation: Validation = None

    @property
    def manifest(self) -> dict:
        return read_manifest(self.folder)

    @cached_property
    def loaded(self) -> TextEncoder:
        """What evaluate.py makes of the folder: not to be changed."""
        return load_run(self.folder, self.cfg)

    @property
    def trained(self) -> dict[str, torch.Tensor]:
        return {n: p for n, p in self.module.encoder.named_parameters() if p.requires_grad}

    def adapter_start(self) -> dict[str, torch.Tensor]:
        return {n: p for n, p in self.copies[0].named_parameters() if "lora_" in n}


@cache
def _flops(cfg_json: str) -> TrainingFlops:
    return training_flops(json.loads(cfg_json))


def flops_whatever_the_attention(cfg: dict) -> TrainingFlops:
    """Count the FLOPs of a pooler once: they follow from shapes, and counting takes a third of so short a run."""
    return _flops(json.dumps({**cfg, "attn": {"name": "causal"}}))


def recorded(cfg: dict, folder: Path) -> Run:
    """Train `cfg` by the real code path and watch it."""
    run = Run(cfg, folder)
    fit, update, drawn = running.fit, StepModule._update, fused_lora.draw_kept

    def watched_fit(config, module, *rest):
        run.module, run.validation = module, module.objective.validation
        run.copies.append(deepcopy(module.encoder))
        fit(config, module, *rest)

    def watched_update(module, *step):
        update(module, *step)
        if len(run.copies) == 1:
            run.copies.append(deepcopy(module.encoder))

    def watched_draw(like, p):
        kept = drawn(like, p)
        run.masks.append(sha256(repr(tuple(like.shape)).encode() + kept.float().numpy().tobytes()).hexdigest())
        return kept

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "training_flops", flops_whatever_the_attention)
        patch.setattr(running, "fit", watched_fit)
        patch.setattr(StepModule, "_update", watched_update)
        patch.setattr(fused_lora, "draw_kept", watched_draw)
        running.train_run(cfg, folder)
    return run


@pytest.fixture(scope="session")
def run_of(cell, tmp_path_factory) -> Callable[[str, str], Run]:
    """The run of a cell: two steps, trained once for all tests."""
    return cache(lambda pooler, attn: recorded(cell(pooler, attn), tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="session")
def awake_run(cell, tmp_path_factory):
    """Return the folder of a run whose LoRA and head are no longer at their start: awake_run("eos", "bi", changes).

    Runs on one base share one LoRA.
    """
    adapters = {}

    def made(pooler, attn, changes=NOTHING, facts=NOTHING):
        cfg = cell(pooler, attn, changes)
        base = cfg["model"]["path"]
        if base not in adapters:
            adapters[base] = tmp_path_factory.mktemp("lora")
            save_trained(*adapted(cfg), adapters[base])
        shape = load_config(cfg["model"])
        experts = [4] * 3 * reads_routers(pooler)
        head = build_pooler(cfg["pooler"], shape.hidden_size, shape.num_hidden_layers, 0, experts)
        for name, weights in head.named_parameters():
            weights.data += 0.05 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(len(name)))
        folder = tmp_path_factory.mktemp(f"{pooler}-{attn}")
        save_file(head.state_dict(), folder / "head.safetensors")
        (folder / "adapter").symlink_to(adapters[base] / "adapter")
        of_the_cell = {"pooler": pooler, "attn": attn, "seed": cfg["seed"], "config": cfg}
        write_manifest(folder, {**OF_A_RUN, **of_the_cell, **base_fingerprints(cfg["model"]), **facts})
        return folder

    return made
