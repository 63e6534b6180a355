"""Matryoshka representation learning: the loss on prefixes of the vectors, so that short vectors serve too."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from records.errors import UserError
from records.limits import check_dims


def matryoshka(
    loss: Callable[[Tensor, Tensor], Tensor],
    queries: Tensor,
    documents: Tensor,
    dims: Sequence[int] | None,
    weights: Sequence[float] | None = None,
) -> Tensor:
    """Weighted mean over d in `dims` of the loss of the first d entries (scalar); without `dims` the loss as it is.

    queries: [B, E]; documents: [K, E]; loss: compares cosines, so that a prefix needs no scaling. weights: one for
    each of `dims`; None: all alike. Kusupati et al. 2022 (arXiv 2205.13147), equation 1, whose sum with weights of 1
    this is up to the factor 1 / len(dims), so that the learning rate serves any number of them.
    """
    if not dims:
        return loss(queries, documents)
    weights = weights or [1.0] * len(dims)
    losses = [w * loss(queries[:, :d], documents[:, :d]) for d, w in zip(dims, weights, strict=True)]
    return sum(losses[1:], losses[0]) / sum(weights)


def check_matryoshka(objective: dict[str, Any]) -> None:
    """Refuse dimensions that are no rising whole numbers, and weights that do not go with them. Raises `UserError`."""
    dims, weights = objective["matryoshka"], objective["matryoshka_weights"]
    if dims is None and weights is None:
        return
    check_dims("objective.matryoshka", dims)
    if weights is None:
        return
    numbers = isinstance(weights, list) and all(isinstance(w, int | float) and w > 0 for w in weights)
    if not numbers or len(weights) != len(dims):
        raise UserError(
            f"objective.matryoshka_weights={weights} must be {len(dims)} numbers above zero, one for each of "
            f"objective.matryoshka={dims}; null: all alike."
        )
