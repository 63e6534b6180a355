"""One chunk through an encoder that has shapes but no memory: what comes out, and what the backward pass would keep."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from encoders.encoder import Encoder
from encoders.tokens import Batch
from poolers.base import TEXT


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


def dry_run(encoder: Encoder, texts: int, length: int) -> DryRun:
    """Run [texts, length] tokens through `encoder`, whose parameters are on the meta device, and count.

    Kernels are the CPU's: a GPU's attention keeps about as much. The encoder's parameters are fake afterwards.
    """
    kept: dict[int, torch.UntypedStorage] = {}  # holds the storages, so that no identity is used twice
    with FakeTensorMode(allow_non_fake_inputs=True):
        encoder.to_empty(device=torch.device("cpu"))
        own = {p.untyped_storage()._cdata for p in encoder.parameters()}

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
