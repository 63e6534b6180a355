"""Objective `distil`: a teacher's scores of each query's positive and negatives, by margin-MSE or by KL divergence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from cli.errors import UserError
from cli.limits import Limit
from cli.limits import real as number
from corpora.triples import Triple, read_triples
from encoders.templates import DEFAULT, Template
from encoders.tokens import Tokens
from training.objectives.infonce import NDCG, InfoNCE, candidates
from training.objectives.objective import Config, Objective, Scores
from training.set_up import SetUp
from training.validation import Validation


def taught_triples(data: Config, cache_dir: str) -> list[Triple]:
    """Return the triples of a `data` configuration. Raises `UserError` where scores lack, or all negatives do."""
    triples = read_triples(data, cache_dir)
    bare, name = sum(not t.scores for t in triples), data["name"]
    if bare:
        raise UserError(
            f"objective=distil learns a teacher's scores, and {bare:,} of {len(triples):,} records of data={name} have "
            "none. Write them into the column 'scores' (data.columns.scores), or with python -m training.mine."
        )
    if not any(t.negatives for t in triples):
        raise UserError(f"objective=distil compares negatives, and no record of data={name} has one. Mine them first.")
    return triples


@dataclass(frozen=True)
class Taught:
    """A batch with its teacher. texts: distinct (instruction, text) pairs; queries: [B] places in them.

    documents: [B, 1+N] places of a query's positive and of its own negatives; scores: [B, 1+N] of the teacher, float32;
    real: [B, 1+N] bool, False where a query has fewer than N negatives.
    """

    texts: list[tuple[str, str]]
    queries: Tensor
    documents: Tensor
    scores: Tensor
    real: Tensor


class Distil(Objective):
    """Queries against their own positive and negatives; in-batch documents, which no teacher scored, take no part."""

    limits: ClassVar = {
        "objective.temperature": number(1e-6, "1 under margin_mse, .03 under kl"),
        "objective.teacher_temperature": number(1e-6, "objective.temperature"),
        "objective.hard_negatives": Limit(1, "all that a query has"),
    }
    words: ClassVar = {"objective.loss": ("margin_mse", "kl")}
    unit = "triples"
    read = staticmethod(taught_triples)
    texts_per_example = staticmethod(InfoNCE.texts_per_example)

    def __init__(self, setup: SetUp, examples: list[Triple], held_out: list[Triple]) -> None:
        self.work, self.examples, self.keys = setup.work, examples, setup.config["objective"]
        self.instruction, self.counts = setup.config["data"].get("instruction"), {}
        self.validation = Validation(setup.text_encoder(), held_out, self.instruction, setup.run)

    def lay_out(self, numbers: Sequence[int], step: int) -> tuple[Taught, list[Tokens]]:
        tokenizer, triples = self.work.tokenizer, [self.examples[i] for i in numbers]
        layout = taught(triples, self.instruction, self.keys["hard_negatives"], tokenizer.template)
        return layout, tokenizer.pairs(layout.texts)

    def backward(self, layout: Taught, rows: list[Tokens], step: int) -> Tensor:
        return self.work.backward(rows, distilled(layout, self.keys), step)

    def held_out_rows(self) -> list[Tokens]:
        return self.validation.rows()

    def held_out_scores(self) -> Scores:
        return {NDCG: self.validation.score()}


def taught(
    triples: Sequence[Triple], instruction: str | None, hard_negatives: int | None, template: Template = DEFAULT
) -> Taught:
    """Lay out a batch with the first `hard_negatives` negatives of each query (None: all)."""
    layout = candidates(triples, instruction, hard_negatives, template=template)
    counts = [len(t.negatives[:hard_negatives]) for t in triples]
    starts = accumulate(counts, initial=len(triples))  # the positives stand first, then every query's negatives
    candidate_places = [[i, *range(start, start + n)] for i, (n, start) in enumerate(zip(counts, starts, strict=False))]
    documents = [layout.documents[places] for places in candidate_places]
    scores = [torch.tensor(t.scores[: 1 + n]) for t, n in zip(triples, counts, strict=True)]
    real = [torch.ones(len(of_query), dtype=torch.bool) for of_query in scores]
    padded = (pad_sequence(part, batch_first=True) for part in (documents, scores, real))
    return Taught(layout.texts, layout.queries, *padded)


def distilled(layout: Taught, objective: Config) -> Callable[[Tensor], Tensor]:
    """Return the loss of the vectors [N, E] of `layout.texts`."""
    loss = {"margin_mse": margin_mse, "kl": kl_divergence}[objective["loss"]]
    temperature = objective["temperature"] or {"margin_mse": 1.0, "kl": 0.03}[objective["loss"]]
    of_teacher = objective["teacher_temperature"] or temperature

    def loss_of(vectors: Tensor) -> Tensor:
        with torch.autocast(vectors.device.type, enabled=False):
            unit = F.normalize(vectors, dim=-1)
            student = (unit[layout.queries][:, None] * unit[layout.documents]).sum(dim=-1)
            teacher, real = layout.scores.to(student), layout.real.to(student.device)
            return loss(student / temperature, teacher / of_teacher, real)

    return loss_of


def margin_mse(student: Tensor, teacher: Tensor, real: Tensor) -> Tensor:
    """Mean over all (query, negative) of ((s+ - s-) - (t+ - t-))^2 (scalar).

    student, teacher, real: [B, 1+N], the positive first. Hofstaetter et al. 2020 (arXiv 2010.02666), margin-MSE; there
    s is a dot product, here what the caller made of a cosine.
    """
    off = (student[:, :1] - student[:, 1:]) - (teacher[:, :1] - teacher[:, 1:])
    pairs = real[:, 1:]
    return off.square().masked_fill(~pairs, 0.0).sum() / pairs.sum().clamp(min=1)


def kl_divergence(student: Tensor, teacher: Tensor, real: Tensor) -> Tensor:
    """Mean over the queries with negatives of sum_d p_t(d) (log p_t(d) - log p_s(d)) (scalar, nats).

    student, teacher, real: [B, 1+N]; p: softmax over the real documents of a query (Hinton et al. 2015,
    arXiv 1503.02531, with a temperature each, and without its factor T^2, to which AdamW is indifferent).
    """
    log_s, log_t = (scores.masked_fill(~real, -torch.inf).log_softmax(dim=1) for scores in (student, teacher))
    terms = log_t.exp() * (log_t - log_s).masked_fill(~real, 0.0)
    return terms.sum() / real[:, 1:].any(dim=1).sum().clamp(min=1)
