"""Objective `mixed`: a loss per kind of data: InfoNCE of pairs, supervised contrast of classes, CoSENT of grades."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError
from cli.limits import Limit, real
from corpora.triples import Triple, read_triples
from encoders.templates import Template
from encoders.tokens import Tokens
from training.batches import query_side, same_label
from training.objectives.infonce import NDCG, InfoNCE, candidates, infonce, labels_of
from training.objectives.objective import Config, Objective, Scores
from training.set_up import SetUp
from training.validation import Validation, encoded

SPEARMAN = "Spearman of graded pairs"
Loss = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Part:
    """The examples of one source in a batch. places: [n] of its texts in those of the batch; loss: of their vectors
    [n, E]; weight: of the loss, the source's share of the batch."""

    places: Tensor
    loss: Loss
    weight: float


class Mixed(Objective):
    """Pairs, classes and graded pairs, each source of a mix by itself."""

    limits: ClassVar = {
        **{f"objective.{of}temperature": real(1e-6) for of in ("", "class_", "graded_")},
        "objective.hard_negatives": Limit(0, "all that a query has"),
    }
    unit = "examples"
    read = staticmethod(read_triples)
    texts_per_example = staticmethod(InfoNCE.texts_per_example)

    def __init__(self, setup: SetUp, examples: list[Triple], held_out: list[Triple]) -> None:
        self.work, self.examples, self.keys = setup.work, examples, setup.config["objective"]
        self.is_mix, self.instruction = "mix" in setup.config["data"], setup.config["data"].get("instruction")
        self.counts, self.encoder = {}, setup.text_encoder()
        ranked = [t for t in held_out if t.kind != "graded"]
        self.validation = Validation(self.encoder, ranked, self.instruction, setup.run) if ranked else None
        self.graded = [t for t in held_out if t.kind == "graded"]
        if self.graded and len({t.grade for t in self.graded}) < 2:
            fault = f"The scores of all {len(self.graded)} held-out graded pairs are equal"
            raise UserError(f"{fault}. Shuffle the file, or give another data.validation=.")

    @staticmethod
    def check(config: Config) -> None:
        """Refuse a batch of one."""
        if config["trainer"]["global_batch_size"] < 2:
            raise UserError("trainer.global_batch_size=1 leaves nothing to compare. Give at least 2.")

    def lay_out(self, numbers: Sequence[int], step: int) -> tuple[list[Part], list[Tokens]]:
        """Return the parts of a batch, and the rows of its distinct texts."""
        of_source: dict[str, list[Triple]] = defaultdict(list)
        for t in (self.examples[i] for i in numbers):
            of_source[t.origin if self.is_mix else ""].append(t)
        places: dict[tuple[str, str], int] = {}
        template, parts = self.work.tokenizer.template, []
        for triples in of_source.values():
            texts, loss = part_of(triples, self.instruction, self.keys, template)
            where = torch.tensor([places.setdefault(text, len(places)) for text in texts])
            parts.append(Part(where, loss, len(triples) / len(numbers)))
        return parts, self.work.tokenizer.pairs(list(places))

    def backward(self, layout: list[Part], rows: list[Tokens], step: int) -> Tensor:
        """Add the gradient of the weighted mean of the parts' losses."""

        def loss_of(vectors: Tensor) -> Tensor:
            with torch.autocast(vectors.device.type, enabled=False):
                return torch.stack([part.weight * part.loss(vectors[part.places]) for part in layout]).sum()

        return self.work.backward(rows, loss_of, step)

    def _graded_texts(self) -> list[tuple[str, str]]:
        """Both texts of each held-out graded pair, (instruction, text): first all first ones."""
        asked = [query_side(t, self.instruction, self.work.tokenizer.template) for t in self.graded]
        sides = ([t.query for t in self.graded], [t.positive for t in self.graded])
        return [pair for side in sides for pair in zip(asked, side, strict=True)]

    def held_out_rows(self) -> list[Tokens]:
        ranked = self.validation.rows() if self.validation else []
        return [*ranked, *self.work.tokenizer.pairs(self._graded_texts())]

    def held_out_scores(self) -> Scores:
        """nDCG@10 of pairs and classes, Spearman's correlation of cosine and grade of graded pairs."""
        scores = {}
        if self.validation:
            scores[NDCG] = self.validation.score()
        if self.graded:
            texts, n = self._graded_texts(), len(self.graded)
            vectors = torch.from_numpy(encoded(self.encoder, texts))
            cosines = F.cosine_similarity(vectors[:n], vectors[n:])
            scores[SPEARMAN] = float(spearmanr(cosines.numpy(), [t.grade for t in self.graded]).statistic)
        return scores


def part_of(
    triples: Sequence[Triple], instruction: str | None, keys: Config, template: Template
) -> tuple[list[tuple[str, str]], Loss]:
    """Return the distinct (instruction, text) pairs of examples of one kind, and the loss of their vectors.

    keys: of the objective. Both texts of a graded pair are asked with the instruction, since neither is an answer.
    """
    if triples[0].kind == "graded":
        asked = [query_side(t, instruction, template) for t in triples]
        texts = [(a, text) for a, t in zip(asked, triples, strict=True) for text in (t.query, t.positive)]
        grades, sources = torch.tensor([t.grade for t in triples]).double(), [[t.source] for t in triples]
        same = same_label(sources, sources)
        return texts, lambda v: cosent(v[::2], v[1::2], grades, same, keys["graded_temperature"])
    layout = candidates(triples, instruction, keys["hard_negatives"], template=template)
    if triples[0].kind == "classes":
        of_queries, of_documents = labels_of(triples, keys["hard_negatives"])
        places = [*layout.queries.tolist(), *layout.documents.tolist()]
        labels = dict(zip(places, [*of_queries, *of_documents], strict=True))
        of_texts = [labels[place] for place in range(len(layout.texts))]
        return layout.texts, lambda v: supcon(v, same_label(of_texts, of_texts), keys["class_temperature"])
    return layout.texts, lambda v: infonce(
        v[layout.queries], v[layout.documents], layout.masked.to(v.device), keys["temperature"]
    )


def supcon(vectors: Tensor, same: Tensor, temperature: float) -> Tensor:
    """Mean over the texts with a positive of -1/|P(i)| sum_{p in P(i)} log softmax_{a != i}(cos(i, a) / temperature)_p.

    vectors: [N, E]; same: [N, N] bool, whether two texts are of one label; P(i): the others of i's label. Zero vectors
    give log(N - 1); without any positive it is 0. Khosla et al. 2020 (arXiv 2004.11362), equation 2 (L_out), there a
    sum over i.
    """
    unit, others = F.normalize(vectors, dim=-1), ~torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    log_p = (unit @ unit.T / temperature).masked_fill(~others, -torch.inf).log_softmax(dim=1)
    positives = same.to(vectors.device) & others
    count = positives.sum(dim=1)
    losses = -log_p.masked_fill(~positives, 0.0).sum(dim=1) / count.clamp(min=1)
    return losses.sum() / (count > 0).sum().clamp(min=1)


def cosent(first: Tensor, second: Tensor, grades: Tensor, same: Tensor, temperature: float) -> Tensor:
    """log(1 + sum over pairs i graded above pairs j of exp((cos_j - cos_i) / temperature)) (scalar, nats).

    first, second: [B, E], the texts of pair i at place i; grades: [B]; same: [B, B] bool, pairs whose grades compare.
    CoSENT (Su 2022, kexue.fm/archives/8847), as sentence-transformers has it with scale = 1 / temperature.
    """
    cosines = F.cosine_similarity(first, second) / temperature
    above = ((grades[:, None] > grades[None]) & same).to(first.device)
    return torch.cat([cosines.new_zeros(1), (cosines[None] - cosines[:, None])[above]]).logsumexp(dim=0)
