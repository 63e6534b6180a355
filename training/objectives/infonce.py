"""Objective `infonce`: contrast over in-batch and hard negatives, float32, false negatives masked; also on prefixes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError
from cli.limits import Limit, check_dims, real
from corpora.mix import shares, sources
from corpora.triples import Triple, read_triples
from encoders.templates import DEFAULT, Template
from encoders.tokens import Tokens
from training.batches import query_side, same_label
from training.objectives.objective import Config, Objective, Scores
from training.set_up import SetUp
from training.validation import Validation

Labels = tuple[str, ...]
LOSS_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
NDCG = "nDCG@10"
CONTRASTIVE = {"objective.loss_queries": Limit(2, "the whole batch"), "objective.temperature": real(1e-6)}


@dataclass(frozen=True)
class Candidates:
    """The comparisons of a batch, as places in a list of distinct (instruction, text) pairs.

    texts: the distinct pairs, with what `Template.asked` makes of an instruction. queries: [B] places. documents: [K]
    places, the B positives first, then all hard negatives. masked: [B, K] bool, pairs that the loss must not push
    apart.
    """

    texts: list[tuple[str, str]]
    queries: Tensor
    documents: Tensor
    masked: Tensor


class Contrastive(Objective):
    """A contrastive loss. keys: of the objective."""

    words: ClassVar[Mapping[str, Sequence[Any]]] = {"objective.loss_dtype": tuple(LOSS_DTYPES)}
    keys: Config

    @staticmethod
    def check(config: Config) -> None:
        o, batch = config["objective"], config["trainer"]["global_batch_size"]
        if batch < 2:
            raise UserError(f"trainer.global_batch_size={batch} has no in-batch negatives. Give at least 2.")
        micro = o["loss_queries"]
        if micro and batch % micro:
            raise UserError(f"objective.loss_queries={micro} must divide trainer.global_batch_size={batch}.")
        if o["matryoshka"] is not None:
            check_dims("objective.matryoshka", o["matryoshka"])

    @staticmethod
    def check_width(objective: Config, width: int) -> None:
        """Refuse prefixes beyond the embedding."""
        check_dims("objective.matryoshka", objective["matryoshka"], width)

    def compares(self, layout: Candidates) -> bool:
        return int((~layout.masked).sum()) > len(layout.queries)  # each query has its own positive

    def backward(self, layout: Candidates, rows: list[Tokens], step: int) -> Tensor:
        return self.work.backward(rows, contrastive_loss(layout, self.keys), step)


class InfoNCE(Contrastive):
    """Queries against the positives and hard negatives of the batch."""

    limits = CONTRASTIVE | {"objective.hard_negatives": Limit(0, "all that a query has")}
    unit = "triples"
    scored_before = False
    read = staticmethod(read_triples)

    def __init__(self, setup: SetUp, examples: list[Triple], held_out: list[Triple]) -> None:
        self.work, self.examples, self.keys = setup.work, examples, setup.config["objective"]
        self.instruction = setup.config["data"].get("instruction")
        self.counts = {}
        held_out = [t for t in held_out if t.kind != "graded"]
        self.validation = Validation(setup.text_encoder(), held_out, self.instruction, setup.run)

    @staticmethod
    def check(config: Config) -> None:
        """Refuse sizes that do not fit, and graded pairs."""
        Contrastive.check(config)
        data = config["data"]
        of_mix = [source for name, source in sources(data).items() if shares(data)[name]] if "mix" in data else [data]
        if any(source.get("reader", "").endswith("graded") for source in of_mix):
            raise UserError("objective=infonce takes every pair for a positive; graded pairs need objective=mixed.")

    @staticmethod
    def texts_per_example(objective: Config) -> int:
        """Query, positive and hard negatives; one where a query may have any number."""
        negatives = objective["hard_negatives"]
        return 2 + (1 if negatives is None else negatives)

    def lay_out(self, numbers: Sequence[int], step: int) -> tuple[Candidates, list[Tokens]]:
        settings = {key: self.keys[key] for key in ("hard_negatives", "mask_duplicates", "loss_queries")}
        triples, tokenizer = [self.examples[i] for i in numbers], self.work.tokenizer
        layout = candidates(triples, self.instruction, **settings, template=tokenizer.template)
        return layout, tokenizer.pairs(layout.texts)

    def held_out_rows(self) -> list[Tokens]:
        return self.validation.rows()

    def held_out_scores(self) -> Scores:
        return {NDCG: self.validation.score()}

    def facts(self, steps: Config) -> Config:
        return {"validation_ndcg_at_10": self.validation.ndcg}


def contrastive_loss(layout: Candidates, objective: Config) -> Callable[[Tensor], Tensor]:
    """Return the loss of the vectors [N, E] of `layout.texts`."""
    temperature, dtype = objective["temperature"], LOSS_DTYPES[objective["loss_dtype"]]

    def loss_of(vectors: Tensor) -> Tensor:
        masked, dims = layout.masked.to(vectors.device), objective["matryoshka"]
        queries, documents = vectors[layout.queries], vectors[layout.documents]
        return matryoshka(lambda q, d: infonce(q, d, masked, temperature, dtype), queries, documents, dims)

    return loss_of


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

    Masked for query i: every other document whose text is i's query, or the positive of i or of another example with
    the same query, whoever brings it; every other document with a label of i; those of class data where i is none, or
    the other way round: no one says of which label a pair's answer is (not so without `mask_duplicates`). With
    `loss_queries` = m, queries are compared with the documents of their own m examples only: what gradient accumulation
    over micro-batches of m computes.
    template: tells the sides apart where they are written differently; a text on both sides is then two.
    """
    places: dict[tuple[str, str], int] = {}
    of_document = template.asked("", "document")

    def place(text: str, asked: str = of_document) -> int:
        return places.setdefault((asked, text), len(places))

    queries = [place(t.query, query_side(t, instruction, template)) for t in triples]
    positives = [place(t.positive) for t in triples]
    negatives = [place(n) for t in triples for n in t.negatives[:hard_negatives]]
    q, p = torch.tensor(queries), torch.tensor(positives)
    documents = torch.tensor([*positives, *negatives])
    as_documents = torch.tensor([places.get((of_document, t.query), -1) for t in triples])
    masked = torch.zeros(len(triples), len(documents), dtype=torch.bool)
    if mask_duplicates:
        # queries have the first places; the last column is of no text
        known = torch.zeros(len(triples), len(places) + 1, dtype=torch.bool)
        known[q, p] = known[q, as_documents] = True
        masked = known[q][:, documents]
        of_queries, of_documents = labels_of(triples, hard_negatives)
        asking, asked = (torch.tensor([bool(names) for names in side]) for side in (of_queries, of_documents))
        both = asking[:, None] & asked
        masked |= torch.where(both, same_label(of_queries, of_documents), asking[:, None] != asked)
    if loss_queries:
        owners = [*range(len(triples)), *(i for i, t in enumerate(triples) for _ in t.negatives[:hard_negatives])]
        micro = torch.tensor(owners) // loss_queries
        masked |= micro[: len(triples), None] != micro[None]
    masked.diagonal().fill_(False)
    return Candidates(list(places), q, documents, masked)


def labels_of(triples: Sequence[Triple], hard_negatives: int | None) -> tuple[list[Labels], list[Labels]]:
    """Return the labels of each query and of each document of a batch, as `candidates` orders them; () where none."""
    of_texts = [t.labels or [()] * (2 + len(t.negatives)) for t in triples]
    negatives = [labels for texts in of_texts for labels in texts[2:][:hard_negatives]]
    return [texts[0] for texts in of_texts], [*(texts[1] for texts in of_texts), *negatives]


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


def matryoshka(
    loss: Callable[[Tensor, Tensor], Tensor], queries: Tensor, documents: Tensor, dims: Sequence[int] | None
) -> Tensor:
    """Mean over d in `dims` of the loss of the first d entries (scalar); without `dims` the loss as it is.

    queries: [B, E]; documents: [K, E]; loss: compares cosines, so that a prefix needs no scaling. Kusupati et al. 2022
    (arXiv 2205.13147), equation 1, there a sum.
    """
    if not dims:
        return loss(queries, documents)
    losses = [loss(queries[:, :d], documents[:, :d]) for d in dims]
    return sum(losses[1:], losses[0]) / len(dims)
