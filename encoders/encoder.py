"""Backbone + pooler: one batch of tokens in, one vector per text out; and what the routers of a mixture say."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from cli.errors import UserError
from encoders.attention.probe import probe_ids, probed
from encoders.attention.switch import Rows, arranged, parts
from encoders.mixse import Sublayer, mixture_of
from encoders.tokens import Batch
from poolers.shared.base import Pooler, RoutedStates, States

T = TypeVar("T")


class Encoder(nn.Module):
    """Runs the decoder and keeps of its states just what the pooler consumes.

    backbone: its matrix products run in `compute` precision; pooler and output are float32.
    """

    def __init__(self, backbone: PreTrainedModel, pooler: Pooler, normalize: bool, compute: torch.dtype) -> None:
        super().__init__()
        self.backbone, self.pooler, self.normalize, self.compute = backbone, pooler, normalize, compute
        self.merged: list[dict[str, Any]] = []  # facts of the stages that are merged into the backbone
        self.texts_of_step = 1  # what a mean over the texts of a whole step is divided by
        self.start: dict[str, Any] = {}  # facts of the runs that the adapter starts as

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


LOGITS, WEIGHTS, CHOSEN = 0, 1, 2  # places in what transformers' routers return: before top-k, of the chosen, which


def routers(backbone: PreTrainedModel) -> list[Any]:
    """The router of every MoE layer, in order; none in a dense decoder. Each is a module with a `weight` [experts, D].

    They are the modules whose output transformers itself records for `output_router_logits=True`. In a dense decoder
    that adapter=mixse made a mixture they are the sublayers of its LoRA experts, attention and MLP of every layer.
    """
    kinds: list[type[nn.Module]] = []
    for module in backbone.modules():
        recorders = (getattr(module, "_can_record_outputs", None) or {}).get("router_logits", [])
        for recorder in recorders if isinstance(recorders, list) else [recorders]:
            kind = getattr(recorder, "target_class", recorder)
            if isinstance(kind, type) and getattr(recorder, "index", LOGITS) == LOGITS:
                kinds.append(kind)
    of_base = [m for m in backbone.modules() if isinstance(m, tuple(kinds))]
    return of_base or list(getattr(getattr(backbone, "mixture", None), "routers", ()))


def experts_of(backbone: PreTrainedModel) -> list[int]:
    """The number of routed experts of every MoE layer, in order; empty for a dense decoder."""
    return [len(router.weight) for router in routers(backbone)]


@contextmanager
def watched(backbone: PreTrainedModel, see: Callable[[int, Any], None]) -> Any:
    """Call `see(i, output)` for MoE layer i (0 is the first) in the forward pass within this context.

    `see` must not compute on what it gets.
    """
    handles = [r.register_forward_hook(lambda *call, i=i: see(i, call[2])) for i, r in enumerate(routers(backbone))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


ROUNDINGS = 16  # how far two ratios may lie apart, in rounding errors of the coarsest format; measured: at most 2


def prove_routers(backbone: PreTrainedModel, poolers: Iterable[Pooler]) -> None:
    """Refuse a decoder whose routers do not weigh experts by a softmax of what they hand out, where a pooler reads it.

    Of routers that weigh experts by sigmoids (DeepSeek-V3, GLM-4-MoE) the decoder never computes a softmax. Those of
    adapter=mixse are ours, and hand out no choice to prove it by.
    """
    if all(pooler.consumes != "routers" for pooler in poolers):
        return
    faults: list[int] = []

    def compare(index: int, router: Any, _args: Any, output: Any) -> None:
        if not isinstance(router, Sublayer) and not _is_softmax(output):
            faults.append(index)

    hooks = [router.register_forward_hook(partial(compare, i)) for i, router in enumerate(routers(backbone))]
    probed(backbone, probe_ids(backbone), hooks)
    if faults:
        raise UserError(
            f"The routers of {type(backbone).__name__} (MoE layers {', '.join(map(str, faults))}) do not weigh experts "
            "by a softmax of their logits, so routing weights as poolers read them would not be the decoder's. Give a "
            "base such as OLMoE, Qwen-MoE, Mixtral or DeepSeek-V2, or a pooler that reads no routers."
        )


def _is_softmax(output: Any) -> bool:
    """Return whether the weights of the chosen experts have the ratios of a softmax of the logits, not of sigmoids.

    output: logits [N, E], weights [N, k] and places [N, k] of the experts that a router chose. Ratios, since weights
    may be scaled, or normalised over the chosen; with k = 1 nothing is proved.
    """
    if not isinstance(output, tuple) or len(output) <= CHOSEN:
        return False
    logits, weights, chosen = (output[i].detach() for i in (LOGITS, WEIGHTS, CHOSEN))
    if weights.shape != chosen.shape or chosen.shape[-1] < 2:
        return False
    z = logits.double().gather(1, chosen)
    of_weights, of_softmax, of_sigmoids = (x - x[:, :1] for x in (weights.double().log(), z, F.logsigmoid(z)))
    allowed = ROUNDINGS * max(torch.finfo(x.dtype).eps for x in (logits, weights)) * (1 + 2 * z.abs().amax())
    off, off_sigmoids = ((of_weights - x).abs() for x in (of_softmax, of_sigmoids))
    return bool(off.max() <= allowed and off.sum() <= off_sigmoids.sum())
