"""Several poolers on one backbone: one forward pass, one vector a pooler and text."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from encoders.backbone import parts
from encoders.encoder import Encoder
from encoders.router_proof import prove_routers
from encoders.routers import LOGITS, watched
from encoders.rows import check_padding
from encoders.tokens import Batch
from poolers.base import Pooler, RoutedStates, States


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
