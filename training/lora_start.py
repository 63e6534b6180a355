"""LoRA that starts from finished runs: their adapters combined, as factors of the run's own rank."""

from collections.abc import Sequence
from math import copysign
from typing import Any

import torch
from peft.utils.merge_utils import dare_linear, dare_ties, task_arithmetic, ties
from torch import Tensor, nn

from cli.errors import UserError
from encoders.adapter import factors_of
from encoders.fast.fused_lora import ADAPTER
from encoders.identity import base_fingerprints
from records.fingerprint import stream_seed
from records.lineage import check_base, read_starts

Config = dict[str, Any]
SUMS = ("uniform", "sum")
SPARSE = {"ties": ties, "dare_ties": dare_ties, "dare_linear": dare_linear}
COMBINE = (*SUMS, *SPARSE)


def check_start(config: Config) -> None:
    """Refuse what does not fit `lora.start`, before a run is read. Raises `UserError`."""
    lora, runs = config["lora"], config["lora"]["start"] or []
    weights = lora["weights"]
    if runs and config["backbone"]["frozen"]:
        raise UserError("backbone.frozen=true trains no LoRA, so lora.start has no effect. Leave one of them out.")
    if weights is not None and not (isinstance(weights, list) and len(weights) == len(runs)):
        raise UserError(f"lora.weights={weights} must be {len(runs)} numbers, one for each run of lora.start.")


@torch.no_grad()
def start_lora(backbone: nn.Module, config: Config) -> Config:
    """Give the LoRA of `backbone` the combined adapters of the runs of `lora.start`; return facts for the manifest.

    `start`: the runs; `start_truncation`: norm of what rank `lora.r` cannot hold over the norm of the combination, all
    layers together. Nothing is changed where there are none. Raises `UserError` for runs that do not fit.
    """
    lora, starts = config["lora"], read_starts(config, "lora.start")
    if not starts:
        return {}
    check_base(starts, base_fingerprints(config["model"]))
    adapters, scaling = [factors_of(start, backbone) for start in starts], lora["alpha"] / lora["r"]
    usual = 1 / len(starts) if lora["combine"] in ("uniform", "dare_linear") else 1.0
    weights = lora["weights"] or [usual] * len(starts)
    lost = whole = 0.0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(config["seed"], "combine"))
        for name in adapters[0]:
            parts = [(scale / scaling, a, b) for scale, a, b in (adapter[name] for adapter in adapters)]
            a, b, left_out = combined(parts, weights, lora["combine"], lora["density"], lora["r"])
            layer: Any = backbone.get_submodule(name)  # ranks that are left keep the start that the seed drew
            layer.lora_A[ADAPTER].weight[: len(a)] = a
            layer.lora_B[ADAPTER].weight[:, : len(a)] = b
            out = float(left_out.square().sum())
            lost, whole = lost + out, whole + out + float((b.T @ b * (a @ a.T)).sum())
    return {"start": [start.facts for start in starts], "start_truncation": (lost / whole) ** 0.5 if whole else 0.0}


def combined(
    parts: Sequence[tuple[float, Tensor, Tensor]], weights: Sequence[float], how: str, density: float, rank: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return A [k, D_in] and B [D_out, k], k at most `rank`, and the singular values that they leave out.

    parts: (scaling, A [r, D_in], B [D_out, r]) of each adapter. B A is the sum of weight x scaling x B_i A_i, or what
    PEFT's TIES and DARE make of the products. Sums keep the factors as they are where they fit, side by side; all else
    is the best approximation of that rank (Eckart and Young 1936), its singular values shared by both factors.
    """
    ranks = sum(len(a) for _, a, _ in parts)
    if how in SUMS and ranks <= rank:
        shares = [weight * scaling for weight, (scaling, _, _) in zip(weights, parts, strict=True)]
        a = torch.cat([a * abs(share) ** 0.5 for share, (_, a, _) in zip(shares, parts, strict=True)])
        b = [b * copysign(abs(share) ** 0.5, share) for share, (_, _, b) in zip(shares, parts, strict=True)]
        return a, torch.cat(b, dim=1), a.new_zeros(0)
    products = [scaling * (b @ a) for scaling, a, b in parts]
    given = torch.tensor(weights, dtype=products[0].dtype)
    change = SPARSE[how](products, given, density) if how in SPARSE else task_arithmetic(products, given)
    u, s, v = torch.linalg.svd(change, full_matrices=False)
    root = s[:rank].sqrt()
    return root[:, None] * v[:rank], u[:, :rank] * root, s[rank:]
