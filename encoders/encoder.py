"""Backbone + pooler: one batch of tokens in, one vector per text out."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from encoders.attention.layout import Rows, arranged
from encoders.attention.switch import check_padding
from encoders.layers import parts
from encoders.mixse import mixture_of
from encoders.routers import LOGITS, prove_routers, watched
from encoders.tokens import Batch
from poolers.shared.base import Pooler, RoutedStates, States

T = TypeVar("T")


class Encoder(nn.Module):
    """Runs the decoder and keeps of its states just what the pooler consumes.

    backbone: its matrix products run in `compute` precision; pooler and output are float32. Raises `UserError` where
    the pooler reads states of padding and the backbone has none.
    """

    def __init__(self, backbone: PreTrainedModel, pooler: Pooler, normalize: bool, compute: torch.dtype) -> None:
        super().__init__()
        check_padding(backbone, [pooler])
        self.backbone, self.pooler, self.normalize, self.compute = backbone, pooler, normalize, compute
        self.lineage: list[dict[str, Any]] = []  # facts of the stages that are merged into the backbone
        self.texts_of_step = 1  # what a mean over the texts of a whole step is divided by
        self.start: dict[str, Any] = {}  # facts of the runs that LoRA started as, training/lora_start.py

    def forward(self, batch: Batch) -> Tensor:
        """Return [B, E] float32, of unit length if `normalize`."""
        states = self.states(batch)
        with torch.autocast(batch.roles.device.type, enabled=False):
            vectors = self.pooler(states, batch.view)
        return F.normalize(vectors, dim=-1) if self.normalize else vectors

    def states(self, batch: Batch) -> States:
        """Return what the pooler consumes: [B, T, D] of the last layer, or its reductions of layers and routers."""
        return self.collected(batch, {"": self.pooler}, packed=self.pooler.reads_packed)[""]

    def collected(self, batch: Batch, poolers: Mapping[str, Pooler], packed: bool = False) -> dict[str, States]:
        """Return name -> what its pooler consumes, all of it from one forward pass. packed: see `each_layer`."""
        if all(pooler.consumes == "last" for pooler in poolers.values()):
            return dict.fromkeys(poolers, self.run_backbone(batch))
        layers = {name: self._layers(pooler) for name, pooler in poolers.items()}
        chosen = sorted({layer for read in layers.values() for layer in read})
        logits: dict[int, Tensor] = {}
        watch: AbstractContextManager[None] = nullcontext()
        if any(pooler.consumes == "routers" for pooler in poolers.values()):
            watch = watched(self.backbone, lambda layer, output: logits.update({layer: output[LOGITS]}))

        def keep(layer: int, hidden: Any) -> dict[str, Any]:
            return {
                name: hidden if pooler.consumes == "last" else pooler.reduce(layer, hidden, batch.view)
                for name, pooler in poolers.items()
                if layer in layers[name]
            }

        with watch:
            kept = dict(zip(chosen, self.each_layer(batch, chosen, keep, packed), strict=True))
        states: dict[str, States] = {}
        for name, pooler in poolers.items():
            reduced = [kept[layer][name] for layer in layers[name]]
            states[name] = reduced[0] if pooler.consumes == "last" else reduced
            if pooler.consumes == "routers":
                states[name] = RoutedStates(reduced, self._routing(batch, logits, pooler))
        return states

    def _layers(self, pooler: Pooler) -> Sequence[int]:
        """The layers whose states a pooler reads. Routers are read in the same pass."""
        if pooler.consumes not in ("last", "layers", "routers"):
            what = f"{type(pooler).__name__} consumes '{pooler.consumes}'"
            raise NotImplementedError(f"{what}, which is not collected yet.")
        return [len(parts(self.backbone)[0]) - 1] if pooler.consumes == "last" else pooler.layers

    def _routing(self, batch: Batch, logits: dict[int, Tensor], pooler: Pooler) -> list[Tensor]:
        """A pooler's reductions of the routers' logits [N, experts] in float32, MoE layer by MoE layer."""
        rows, reductions = self._arranged(batch), []
        with torch.autocast(batch.roles.device.type, enabled=False):
            for layer, of_layer in sorted(logits.items()):  # a router knows of no texts, so the batch is laid out again
                read = of_layer.float().unflatten(0, rows.shape) if rows.places is None else of_layer.float()[None]
                reductions.append(pooler.reduce_routing(layer, rows.padded(read), batch.view))
        return reductions

    def precision(self) -> torch.autocast:
        """The number format of the backbone's matrix products."""
        device = next(self.backbone.parameters()).device
        return torch.autocast(device.type, self.compute, enabled=self.compute is not torch.float32)

    def run_backbone(self, batch: Batch) -> Tensor:
        """[B, T, D] states of the last layer after the final norm."""
        rows = self._arranged(batch)
        with self.precision():
            return rows.padded(self.backbone(**rows.inputs).last_hidden_state)

    def _arranged(self, batch: Batch) -> Rows:
        """`batch` as the backbone wants it; in training a mixture of experts learns which token is of which text."""
        rows, mixture = arranged(self.backbone, batch), mixture_of(self.backbone)
        if mixture is not None and self.training:
            mixture.texts = rows.texts, rows.shape[0], self.texts_of_step
        return rows

    def each_layer(
        self, batch: Batch, chosen: Sequence[int], reduce: Callable[[int, Any], T], packed: bool = False
    ) -> list[T]:
        """`reduce(layer, hidden [B, T, D])` of each chosen layer, called while the layer's states are at hand.

        The last one is taken after the final norm, as in transformers' `hidden_states[1:]`. packed: hand states over as
        the decoder has them, `Packed` without padding.
        """
        layers, norm = parts(self.backbone)
        reductions: dict[int, T] = {}
        rows = self._arranged(batch)

        def keep(index: int, _module: nn.Module, _inputs: Any, output: Any) -> None:
            states = output[0] if isinstance(output, tuple) else output
            with torch.autocast(states.device.type, enabled=False):
                reductions[index] = reduce(index, rows.packed(states) if packed else rows.padded(states))

        sites = [*layers[:-1], norm]
        handles = [sites[i].register_forward_hook(partial(keep, i)) for i in chosen]
        try:
            with self.precision():
                self.backbone(**rows.inputs)
        finally:
            for handle in handles:
                handle.remove()
        return [reductions[i] for i in chosen]


@dataclass(frozen=True)
class Reading:
    """One way to make a vector of a decoder's states."""

    pooler: Pooler
    normalize: bool


class Readings:
    """Runs `encoder`'s backbone once per batch and gives each pooler what it consumes, as `Encoder` would alone."""

    def __init__(self, encoder: Encoder, readings: Mapping[str, Reading]) -> None:
        poolers = [reading.pooler for reading in readings.values()]
        check_padding(encoder.backbone, poolers)
        with encoder.precision():  # weights may be stored as they are computed by now, beside float32 states
            prove_routers(encoder.backbone, poolers)
        self.encoder, self.readings = encoder, dict(readings)

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        """Return reading -> [B, E] float32, of unit length where the reading is normalised."""
        states = self.encoder.collected(batch, {name: reading.pooler for name, reading in self.readings.items()})
        with torch.autocast(batch.roles.device.type, enabled=False):
            vectors = {name: r.pooler(states[name], batch.view) for name, r in self.readings.items()}
        return {name: F.normalize(v, dim=-1) if self.readings[name].normalize else v for name, v in vectors.items()}
