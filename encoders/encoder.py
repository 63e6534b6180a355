"""Backbone + pooler: one batch of tokens in, one vector a text out."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from encoders.attention.kernels import check_padding
from encoders.attention.layout import Rows, arranged, last_states
from encoders.layers import parts
from encoders.routers import LOGITS, prove_routers, watched
from encoders.tokens import Batch
from poolers.shared.base import Pooler, RoutedStates, States

T = TypeVar("T")


class Encoder(nn.Module):
    """Runs the decoder and keeps of its states just what the pooler consumes.

    backbone: the decoder, with or without LoRA inside its linear layers. Matrix products of the backbone run in
    `compute` precision; pooler and output are float32 whatever the backbone's precision. Raises `UserError` where the
    pooler reads states of padding and the backbone has none.
    """

    def __init__(self, backbone: PreTrainedModel, pooler: Pooler, normalize: bool, compute: torch.dtype) -> None:
        super().__init__()
        check_padding(backbone, [pooler])
        self.backbone, self.pooler, self.normalize, self.compute = backbone, pooler, normalize, compute
        self.lineage: list[dict[str, Any]] = []  # facts of the stages that are merged into the backbone
        self.merge_rounding = 0.0  # encoders/merge_stages.py

    def forward(self, batch: Batch) -> Tensor:
        """Return [B, E] float32, of unit length if `normalize`."""
        states = self.states(batch)
        with torch.autocast(batch.roles.device.type, enabled=False):
            vectors = self.pooler(states, batch.view)
        return F.normalize(vectors, dim=-1) if self.normalize else vectors

    def states(self, batch: Batch) -> States:
        """What the pooler consumes: [B, T, D] of the last layer, or its reductions of layers and routers."""
        if self.pooler.consumes == "last":
            return self.run_backbone(batch)
        logits: dict[int, Tensor] = {}
        sight: AbstractContextManager[None] = nullcontext()
        if self.pooler.consumes == "routers":
            sight = watched(self.backbone, lambda layer, output: logits.update({layer: output[LOGITS]}))
        with sight:
            hidden = self.each_layer(
                batch,
                self.pooler.layers,
                lambda layer, hidden: self.pooler.reduce(layer, hidden, batch.view),
                packed=self.pooler.reads_packed,
            )
        return RoutedStates(hidden, self.routing(batch, logits, self.pooler)) if logits else hidden

    def routing(self, batch: Batch, logits: dict[int, Tensor], pooler: Pooler) -> list[Tensor]:
        """A pooler's reductions of the routers' logits [N, experts], MoE layer by MoE layer."""
        rows = arranged(self.backbone, batch)
        with torch.autocast(batch.roles.device.type, enabled=False):
            return [
                pooler.reduce_routing(layer, routing_of(rows, logits[layer]), batch.view) for layer in sorted(logits)
            ]

    def precision(self, batch: Batch) -> torch.autocast:
        """The number format of the backbone's matrix products."""
        return torch.autocast(batch.roles.device.type, self.compute, enabled=self.compute is not torch.float32)

    def run_backbone(self, batch: Batch) -> Tensor:
        """[B, T, D] states of the last layer after the final norm."""
        with self.precision(batch):
            return last_states(self.backbone, batch)

    def each_layer(
        self, batch: Batch, chosen: Sequence[int], reduce: Callable[[int, Any], T], packed: bool = False
    ) -> list[T]:
        """`reduce(layer, hidden [B, T, D])` of each chosen layer, called while the layer's states are at hand.

        Layer i < L-1 is the output of decoder layer i; the last one is taken after the final norm, as in
        transformers' `hidden_states[1:]`. packed: hand states over as the decoder has them, `Packed` without padding.
        """
        layers, norm = parts(self.backbone)
        reductions: dict[int, T] = {}
        rows = arranged(self.backbone, batch)

        def keep(index: int) -> Any:
            def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
                states = output[0] if isinstance(output, tuple) else output
                with torch.autocast(states.device.type, enabled=False):
                    reductions[index] = reduce(index, rows.packed(states) if packed else rows.padded(states))

            return hook

        sites = [*layers[:-1], norm]
        handles = [sites[i].register_forward_hook(keep(i)) for i in chosen]
        try:
            with self.precision(batch):
                self.backbone(**rows.inputs)
        finally:
            for handle in handles:
                handle.remove()
        return [reductions[i] for i in chosen]


def routing_of(rows: Rows, logits: Tensor) -> Tensor:
    """[B, T, experts] float32 logits of a router, which knows of no texts; logits: [N, experts]."""
    lying = logits.float().unflatten(0, rows.shape) if rows.places is None else logits.float()[None]
    return rows.padded(lying)


@dataclass(frozen=True)
class Reading:
    """One way to make a vector of a decoder's states."""

    pooler: Pooler
    normalize: bool


class Readings:
    """Runs `encoder`'s backbone once a batch and gives each pooler what it consumes, as `Encoder` would alone."""

    def __init__(self, encoder: Encoder, readings: Mapping[str, Reading]) -> None:
        poolers = [reading.pooler for reading in readings.values()]
        check_padding(encoder.backbone, poolers)
        prove_routers(encoder.backbone, poolers)
        self.encoder, self.readings = encoder, dict(readings)
        self.last = len(parts(encoder.backbone)[0]) - 1

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        """Return reading -> [B, E] float32, of unit length where the reading is normalised."""
        states = self.states(batch)
        with torch.autocast(batch.roles.device.type, enabled=False):
            vectors = {name: r.pooler(states[name], batch.view) for name, r in self.readings.items()}
        return {name: F.normalize(v, dim=-1) if self.readings[name].normalize else v for name, v in vectors.items()}

    def states(self, batch: Batch) -> dict[str, States]:
        """Reading -> what its pooler consumes, all of it from one forward pass."""
        layers = {name: self._layers(r.pooler) for name, r in self.readings.items()}
        if all(r.pooler.consumes == "last" for r in self.readings.values()):
            hidden = self.encoder.run_backbone(batch)
            return dict.fromkeys(self.readings, hidden)

        def keep(layer: int, hidden: Tensor) -> dict[str, Tensor]:
            return {
                name: hidden if r.pooler.consumes == "last" else r.pooler.reduce(layer, hidden, batch.view)
                for name, r in self.readings.items()
                if layer in layers[name]
            }

        chosen = sorted({layer for own in layers.values() for layer in own})
        logits: dict[int, Tensor] = {}
        with self._sight(logits):
            kept = dict(zip(chosen, self.encoder.each_layer(batch, chosen, keep), strict=True))
        return {
            name: self._consumed(r.pooler, batch, [kept[i][name] for i in layers[name]], logits)
            for name, r in self.readings.items()
        }

    def _sight(self, logits: dict[int, Tensor]) -> AbstractContextManager[None]:
        """Within it the routers' logits of the forward pass are put into `logits`, where a pooler reads them."""
        if all(r.pooler.consumes != "routers" for r in self.readings.values()):
            return nullcontext()
        sight: AbstractContextManager[None] = watched(
            self.encoder.backbone, lambda layer, output: logits.update({layer: output[LOGITS]})
        )
        return sight

    def _consumed(self, pooler: Pooler, batch: Batch, kept: list[Tensor], logits: dict[int, Tensor]) -> States:
        """What one pooler consumes, of its layers' reductions and of all routers' logits."""
        if pooler.consumes == "last":
            return kept[0]
        if pooler.consumes == "routers":
            return RoutedStates(kept, self.encoder.routing(batch, logits, pooler))
        return kept

    def _layers(self, pooler: Pooler) -> Sequence[int]:
        """The layers whose states a pooler reads. Routers are read beside them, in the same pass."""
        if pooler.consumes == "last":
            return [self.last]
        if pooler.consumes in ("layers", "routers"):
            return pooler.layers
        raise NotImplementedError(f"{type(pooler).__name__} consumes '{pooler.consumes}', which is not collected yet.")
