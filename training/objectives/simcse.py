"""Objective `simcse`: a text twice, dropout the only difference (arXiv 2104.08821); LLM2Vec's second stage."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from cli.errors import UserError
from cli.limits import Limit, real
from corpora.raw_text import read_texts, refuse_pairs
from corpora.triples import Triple
from encoders.tokens import Tokens
from poolers.shared.vector_geometry import alignment, uniformity
from training.objectives.infonce import CONTRASTIVE, Candidates, Contrastive
from training.objectives.objective import Config, Scores
from training.set_up import SetUp

HELD_OUT = -1  # in place of a step: the dropout of the held-out texts, the same at every scoring


class SimCSE(Contrastive):
    """InfoNCE between two passes of the same texts, with dropout in LoRA and in attention."""

    limits = CONTRASTIVE | {"objective.attention_dropout": real(0, below=1), "data.validation": Limit(2)}
    read = staticmethod(read_texts)

    def __init__(self, setup: SetUp, examples: list[Triple], held_out: list[Triple]) -> None:
        set_attention_dropout(setup.encoder.backbone, setup.config["objective"]["attention_dropout"])
        self.work, self.examples, self.keys = setup.work, examples, setup.config["objective"]
        self.counts = {}
        self.held_out = setup.tokenizer.pairs([("", t.query) for t in held_out])

    @staticmethod
    def check(config: Config) -> None:
        """Refuse sizes that do not fit, negatives that raw text has not, and a text whose two vectors are one."""
        Contrastive.check(config)
        refuse_pairs(config["data"])
        fault = ""
        if config["backbone"]["frozen"]:
            fault = "needs each text twice, and backbone.frozen=true computes it once"
        elif config["objective"]["hard_negatives"] != 0:
            fault = "reads raw text, which has no hard negatives. Set objective.hard_negatives=0"
        elif not config["lora"]["dropout"] and not config["objective"]["attention_dropout"]:
            fault = "needs dropout. Raise lora.dropout or objective.attention_dropout"
        if fault:
            raise UserError(f"objective=simcse {fault}.")

    @staticmethod
    def texts_per_example(objective: Config) -> int:
        return 2

    def lay_out(self, numbers: Sequence[int], step: int) -> tuple[Candidates, list[Tokens]]:
        layout = twice([self.examples[i].query for i in numbers], self.keys["loss_queries"])
        return layout, self.work.tokenizer.pairs(layout.texts)

    def held_out_rows(self) -> list[Tokens]:
        return self.held_out

    def held_out_scores(self) -> Scores:
        """Alignment of the two passes under dropout, uniformity without it."""
        one, other = (self.work.vectors(self.held_out, HELD_OUT - k) for k in range(2))
        plain = self.work.vectors(self.held_out, None)
        return {"alignment": alignment(one.numpy(), other.numpy()), "uniformity": uniformity(plain.numpy())}


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
    return Candidates([("", text) for text in texts] * 2, torch.arange(count), torch.arange(count, 2 * count), masked)


def set_attention_dropout(backbone: PreTrainedModel, p: float) -> None:
    """Drop weights of attention with probability `p` in training; every kernel of ours and transformers' obeys.

    Raises `UserError` where the decoder's attention has no dropout to set.
    """
    modules = [m for m in backbone.modules() if isinstance(getattr(m, "attention_dropout", None), int | float)]
    if p and not modules:
        lack = f"{type(backbone).__name__} has no dropout of attention"
        raise UserError(f"objective.attention_dropout={p}, but {lack}. Set it to 0.")
    for module in modules:
        module.attention_dropout = p  # type: ignore[assignment]
