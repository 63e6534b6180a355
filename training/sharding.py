"""Frozen weights of the base shared out over the processes of a run, gathered layer by layer while they are used."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from encoders.encoder import Encoder
from encoders.layers import parts
from training.large_batch import world_size


def shard_base(encoder: Encoder, device: torch.device) -> None:
    """Leave on `device` this process's share of each frozen tensor of the base; what is trained stays whole.

    FSDP2 (`torch.distributed.fsdp.fully_shard`) gathers a layer before its forward and its backward pass and lets go
    of it afterwards. Trained parameters are left out: gradients, clipping, optimiser and checkpoints see plain
    tensors, and gradients are summed once a step as without it. Every process must make as many passes as the others
    (`ChunkPlan.even`).
    """
    backbone: nn.Module = encoder.backbone
    if isinstance(backbone, FSDPModule):
        return
    mesh = init_device_mesh(device.type, (world_size(),))
    trained = {p for p in encoder.parameters() if p.requires_grad}
    layers, _ = parts(encoder.backbone)
    for part in (*layers, backbone):  # the rest, such as the tokens' vectors, is one more group
        fully_shard(part, mesh=mesh, ignored_params=trained)
    encoder.to(device)
