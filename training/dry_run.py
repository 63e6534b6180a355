"""One chunk through an encoder that has shapes but no memory: what comes out, and what the backward pass would keep."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

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
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            vectors = encoder(Batch(roles, roles, positions))
    width = encoder.pooler.hidden_size
    item = encoder.compute.itemsize
    saved = sum(storage.nbytes() for storage in kept.values())
    return DryRun(vectors.shape[1], vectors.dtype, saved, texts * length * width * item)
