"""Objective `simcse`: a text twice, dropout the only difference (arXiv 2104.08821); LLM2Vec's second stage."""

from collections.abc import Sequence
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError
from corpora.raw_text import read_texts, refuse_pairs
from corpora.triples import Triple
from encoders.attention.switch import set_attention_dropout
from records.run_folder import RunFolder
from training.batches import BatchOrder
from training.contrastive import check_sizes
from training.large_batch import LargeBatch
from training.module import ContrastiveModule
from training.objectives.infonce import Candidates
from training.set_up import SetUp
from training.stage import Scores, TextStage, train_stage
from training.start import start
from training.validation import collapse

Config = dict[str, Any]
HELD_OUT = -1  # in place of a step: the dropout of the held-out texts, the same at every scoring


def train(cfg: DictConfig) -> None:
    """Train the stage of `cfg` unless its folder says it is finished; continue it where it was interrupted."""
    start(cfg, check_simcse, train_simcse, read_texts)


def train_simcse(config: Config, folder: RunFolder) -> None:
    """Train one SimCSE stage into `folder`."""
    train_stage(config, folder, SimCSE)


def check_simcse(config: Config) -> None:
    """Refuse numbers that do not fit, negatives that raw text has not, and a text whose two vectors are one."""
    check_sizes(config)
    refuse_pairs(config["data"])
    if config["backbone"]["frozen"]:
        raise UserError("backbone.frozen=true computes a text once; objective=simcse needs it twice. Leave one out.")
    if config["objective"]["hard_negatives"] != 0:
        raise UserError("objective=simcse reads raw text, which has no hard negatives. Set objective.hard_negatives=0.")
    if not config["lora"]["dropout"] and not config["objective"]["attention_dropout"]:
        raise UserError(
            "Without dropout the two vectors of a text are the same. Raise lora.dropout or objective.attention_dropout."
        )


def twice(texts: Sequence[str], loss_queries: int | None = None) -> Candidates:
    """Lay out a batch: text i as query at place i, once more as document at place B + i.

    The two are places of their own, so that both are run, each under its own dropout. Documents of the same text
    as a query's are masked, but for its own. loss_queries: as in `candidates`.
    """
    count = len(texts)
    number = {text: i for i, text in enumerate(texts)}
    same = torch.tensor([number[text] for text in texts])
    masked = same[:, None] == same[None]
    if loss_queries:
        micro = torch.arange(count) // loss_queries
        masked |= micro[:, None] != micro[None]
    masked.fill_diagonal_(False)
    pairs = [("", text) for text in texts]
    return Candidates(pairs + pairs, torch.arange(count), torch.arange(count, 2 * count), masked)


class TwiceModule(ContrastiveModule):
    """InfoNCE between two passes of the same texts."""

    def lay_out(self, examples: Sequence[int]) -> Candidates:
        """Who is compared with whom in a batch."""
        return twice([self.triples[i].query for i in examples], self.cfg["objective"]["loss_queries"])


class SimCSE(TextStage):
    """SimCSE with dropout in LoRA and in attention."""

    def __init__(self, made: SetUp, texts: list[Triple], held_out: list[Triple], order: BatchOrder) -> None:
        set_attention_dropout(made.encoder.backbone, made.config["objective"]["attention_dropout"])
        self.module = TwiceModule(made.work(LargeBatch), texts, order, made.config)
        self.rows = self.module.work.tokenize([("", t.query) for t in held_out])
        self.vectors = torch.empty(0)

    def held_out_scores(self) -> Scores:
        """Alignment of the two passes under dropout, uniformity without it."""
        work = self.module.work
        one, other = (work.vectors(self.rows, HELD_OUT - k) for k in range(2))
        self.vectors = work.vectors(self.rows, None)
        return {"alignment": alignment(one, other), "uniformity": uniformity(self.vectors)}

    def collapse(self, loss: float, before: Scores, after: Scores) -> str | None:
        """A loss at chance, or vectors that are all alike."""
        return collapse(loss, self.module.candidates, self.vectors)


def alignment(one: Tensor, other: Tensor) -> float:
    """Mean squared distance of the unit vectors of a pair. one, other: [N, E]; 0 where all pairs agree.

    Wang and Isola 2020 (arXiv 2005.10242), equation 2 with alpha = 2.
    """
    return float((F.normalize(one.double(), dim=-1) - F.normalize(other.double(), dim=-1)).square().sum(dim=-1).mean())


def uniformity(vectors: Tensor) -> float:
    """log of the mean over pairs of exp(-2 squared distance) of unit vectors [N, E]; 0 where all are alike.

    Wang and Isola 2020 (arXiv 2005.10242), equation 3 with t = 2.
    """
    return float(torch.pdist(F.normalize(vectors.double(), dim=-1)).square().mul(-2).exp().mean().log())
