"""A mixture of experts in pretraining: the loss that keeps its experts in use, and how evenly they are used."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from encoders.routers import CHOSEN, experts_of, watched


def balance_loss(logits: Sequence[Tensor], top_k: int) -> Tensor:
    """Mean over layers of E sum_e f_e p_e: Switch Transformers (arXiv 2101.03961), equations 4 to 6, for top-k.

    f_e: share of the tokens that have expert e among their top k, over k; p_e: mean routing weight. 1 where all
    experts are used alike, E where one takes everything with k = 1. logits: [tokens, E] of each layer, before top-k.
    """
    losses = []
    for weights in (of_layer.float().softmax(dim=-1) for of_layer in logits):
        experts = weights.shape[-1]
        chosen = F.one_hot(weights.topk(top_k, dim=-1).indices, experts).float().sum(dim=1)
        losses.append(experts * (chosen.mean(dim=0) / top_k * weights.mean(dim=0)).sum())
    return torch.stack(losses).mean()


def active_parameters(model: PreTrainedModel) -> int:
    """Parameters that one token meets: all but the experts that its routers do not choose."""
    total, experts = sum(p.numel() for p in model.parameters()), experts_of(model)
    if not experts:
        return total
    routed = sum(p.numel() for name, p in model.named_parameters() if ".experts." in name)
    return total - routed + round(routed * int(model.config.get_text_config().num_experts_per_tok) / experts[0])


def expert_shares(model: PreTrainedModel, documents: Sequence[Sequence[int]], length: int) -> list[list[float]]:
    """For each MoE layer the share of all choices that falls on each expert; a uniform use is 1 / E everywhere.

    documents: token ids, each cut to `length` and run on its own. Empty for a dense model.
    """
    counts = [torch.zeros(n) for n in experts_of(model)]

    def see(layer: int, output: Any) -> None:
        counts[layer] += torch.bincount(output[CHOSEN].flatten(), minlength=len(counts[layer])).float()

    model.eval()
    for document in documents if counts else ():
        with torch.inference_mode(), watched(model, see):
            model(input_ids=torch.tensor([document[:length]]), use_cache=False)
    return [(c / c.sum()).tolist() for c in counts]
