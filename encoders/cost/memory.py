"""Bytes of tensors while texts are encoded, counted on tensors that have shapes only."""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from encoders.attention.kernels import is_unpadded
from encoders.attention.layout import arranged, one_text_each
from encoders.attention.switch import attentions
from encoders.attention.unpadded import UNPADDED
from encoders.encoder import Encoder
from encoders.jit_layer import use_kernels
from encoders.quantised import frozen_bytes
from encoders.tokens import Batch
from poolers.shared.base import PAD, TEXT


class GroupedInAnyFormat(TorchFunctionMode):
    """Within it, grouped products of tensors without memory have a shape in every format; torch knows bf16 alone.

    transformers' own fallback stands in, which keeps the same tensors for the backward pass.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call `func`, or the fallback in its place."""
        kwargs = kwargs or {}
        if func is torch._grouped_mm and args[0].dtype is not torch.bfloat16:
            return torch.ops.transformers.grouped_mm_fallback(args[0], args[1], kwargs["offs"])
        return func(*args, **kwargs)


class _Held(TorchDispatchMode):
    """Within it, `peak` is the largest sum of bytes of all storages that operations have made; `apart` do not count."""

    def __init__(self, apart: Iterable[Tensor]) -> None:
        super().__init__()
        self.peak, self._live = 0, WeakIdKeyDictionary()
        self._apart = {id(storage): storage for storage in (tensor.untyped_storage() for tensor in apart)}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, then count."""
        out = func(*args, **(kwargs or {}))
        for storage in (tensor.untyped_storage() for tensor in tree_leaves(out) if isinstance(tensor, Tensor)):
            if id(storage) not in self._apart:
                self._live[storage] = storage.nbytes()
        self.peak = max(self.peak, sum(self._live.values()))
        return out


def weight_bytes(encoder: Encoder, quantise: str | None) -> int:
    """Return the bytes of an empty encoder's weights, linear layers of its base as `quantise` says."""
    apart = [p for p in encoder.backbone.parameters() if p.requires_grad]
    return frozen_bytes(encoder.backbone, quantise) + sum(p.nbytes for p in (*apart, *encoder.pooler.parameters()))


def chunk_bytes(encoder: Encoder, chunks: Iterable[Sequence[int]], kernel: str, device: torch.device) -> Iterator[int]:
    """Yield the most that the forward pass of each chunk, the lengths of its texts, holds at once, weights apart.

    encoder: empty; it has weights without memory afterwards. kernel, device: those of the real pass. sdpa stands for
    kernels that hold no scores of attention (a GPU's without padding, in 16 bits), or hold them once (numba's).
    """
    backbone, mode, each = encoder.backbone, FakeTensorMode(allow_non_fake_inputs=True), 0
    with mode:
        encoder.to_empty(device=torch.device("cpu"))
    weights = [*encoder.parameters(), *encoder.buffers()]
    if kernel == UNPADDED:
        stand_in, backbone.config._attn_implementation = backbone.config._attn_implementation, UNPADDED
        if device.type == "cpu" and use_kernels(backbone, encoder.compute):
            each = encoder.compute.itemsize * backbone.config.get_text_config().num_attention_heads
        if each or (device.type == "cuda" and encoder.compute is not torch.float32):
            backbone.config._attn_implementation = stand_in
    for lengths in chunks:
        width = max(lengths) if kernel != UNPADDED else ceil(sum(lengths) / len(lengths))
        with mode:
            batch = one_text_each(torch.full((len(lengths), width), TEXT))
        if is_unpadded(backbone):
            batch = _laid_out(encoder, lengths)
        with mode, GroupedInAnyFormat(), torch.inference_mode(), _Held(weights) as memory:
            encoder(batch)
        yield memory.peak + each * sum(n * n for n in lengths)


def _laid_out(encoder: Any, lengths: Sequence[int]) -> Batch:
    """Texts of `lengths` as a batch, which `encoder` lays out as one row: without memory no length could be read."""
    column = torch.arange(max(lengths))
    real = column < torch.tensor(lengths)[:, None]
    batch = Batch(real.long(), torch.where(real, TEXT, PAD), torch.where(real, column, 0))
    rows = arranged(encoder.backbone, batch)
    for module in attentions(encoder.backbone):
        rows.inputs["segments"].groups(module.sees)
    encoder._arranged = lambda _: rows
    return batch
