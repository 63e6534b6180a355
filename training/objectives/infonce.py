"""InfoNCE over in-batch and hard negatives, float32, with false negatives masked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError
from cli.limits import check_dims
from corpora.triples import Triple
from encoders.templates import DEFAULT, Template


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


@dataclass(frozen=True)
class Candidates:
    """Who is compared with whom, as places in a list of distinct (instruction, text) pairs.

    texts: the distinct pairs, with what `Template.asked` makes of an instruction. queries: [B] places. documents: [K]
    places, the B positives first, then all hard negatives. masked: [B, K] bool, pairs that the loss must not push
    apart.
    """

    texts: list[tuple[str, str]]
    queries: Tensor
    documents: Tensor
    masked: Tensor


def asked_of(triple: Triple, instruction: str | None, template: Template) -> str:
    """Return what the tokenizer is told for the query of `triple`: its own instruction goes before the data set's."""
    return template.asked(triple.instruction or instruction or "", "query")


def candidates(
    triples: Sequence[Triple],
    instruction: str | None,
    hard_negatives: int | None,
    mask_duplicates: bool = True,
    loss_queries: int | None = None,
    *,
    template: Template = DEFAULT,
) -> Candidates:
    """Lay out a batch. `hard_negatives` bounds those of each query (None: all it has, 0: in-batch negatives only).

    Masked for query i: every other document whose text is i's positive or i's query, and the positives of other
    examples with the same query (not so without `mask_duplicates`). With `loss_queries` = m, queries are compared
    with the documents of their own m examples only: what gradient accumulation over micro-batches of m computes.
    template: tells the sides apart where they are written differently; a text on both sides is then two.
    """
    places: dict[tuple[str, str], int] = {}
    of_document = template.asked("", "document")

    def place(text: str, asked: str = of_document) -> int:
        return places.setdefault((asked, text), len(places))

    queries = [place(t.query, asked_of(t, instruction, template)) for t in triples]
    positives = [place(t.positive) for t in triples]
    negatives = [place(n) for t in triples for n in t.negatives[:hard_negatives]]
    q, p = torch.tensor(queries), torch.tensor(positives)
    documents = torch.tensor([*positives, *negatives])
    as_documents = torch.tensor([places.get((of_document, t.query), -1) for t in triples])
    masked = torch.zeros(len(triples), len(documents), dtype=torch.bool)
    if mask_duplicates:
        masked = (documents[None] == p[:, None]) | (documents[None] == as_documents[:, None])
        masked[:, : len(triples)] |= q[:, None] == q[None]
    if loss_queries:
        owners = [*range(len(triples)), *(i for i, t in enumerate(triples) for _ in t.negatives[:hard_negatives])]
        micro = torch.tensor(owners) // loss_queries
        masked |= micro[: len(triples), None] != micro[None]
    masked.diagonal().fill_(False)
    return Candidates(list(places), q, documents, masked)


def infonce(
    queries: Tensor, documents: Tensor, masked: Tensor, temperature: float, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Mean over queries of -log softmax(cos(q_i, d_i) / temperature) over the unmasked documents (scalar, nats).

    queries: [B, E]; documents: [K, E], the positive of query i at place i; masked: [B, K] bool. dtype: of cosines,
    logits and loss; in bf16 cosines of .9000 and .9001 are one number.
    van den Oord et al. 2018 (arXiv 1807.03748), equation 4; cosine as similarity. Zero vectors give log K.
    """
    with torch.autocast(queries.device.type, enabled=False):
        logits = F.normalize(queries.to(dtype), dim=-1) @ F.normalize(documents.to(dtype), dim=-1).T / temperature
        logits = logits.masked_fill(masked, -torch.inf)
        return F.cross_entropy(logits, torch.arange(len(queries), device=queries.device)).float()
