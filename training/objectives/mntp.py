"""Objective `mntp`: masked next-token prediction, the first stage of LLM2Vec (arXiv 2404.05961, section 2.1)."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from torch import Tensor

from cli.errors import UserError
from cli.limits import real
from corpora.raw_text import read_texts
from corpora.triples import Triple
from encoders.tokens import TextTokenizer, Tokens
from poolers.shared.base import BOS, TEXT
from records.files import of_value
from training.objectives.masking import TOKENIZED, Masked, MaskedLoss, lm_head, masking, refuse_untrained
from training.objectives.objective import Config, Objective, Scores
from training.set_up import SetUp

HELD_OUT = -1  # in place of a step: the masks of the held-out texts, the same at every scoring


class MNTP(Objective):
    """The state before a masked token predicts it, by the base's own frozen language-model head.

    With `packed`, an example is a block of tokens that were laid end to end.
    """

    limits: ClassVar = {
        "objective.mask_share": real(1e-6, largest=1),
        "objective.replaced_by_mask": real(0, largest=1),
        "objective.replaced_by_random": real(0, largest=1),
    }
    read = staticmethod(read_texts)

    def __init__(self, setup: SetUp, examples: list[Triple], held_out: list[Triple]) -> None:
        config, self.work, self.examples = setup.config, setup.work, examples
        self.loss = MaskedLoss(setup.work, lm_head(setup.encoder.backbone, config["model"]))
        self.masks = masking(config["objective"], setup.tokenizer.tokenizer, len(self.loss.head), config["seed"])
        self.counts = {"masked": 0}  # tokens so far
        self.packed: list[Tokens] = []
        if config["objective"]["packed"]:
            self.packed, apart = (blocks([t.query for t in some], setup.tokenizer) for some in (examples, held_out))
            self.examples = [
                Triple(f"block {i}", of_value(block.ids), (), "packed") for i, block in enumerate(self.packed)
            ]
        else:
            apart = setup.tokenizer.pairs([("", t.query) for t in held_out])
        self.held_out = self.masks(apart, HELD_OUT)
        if not any(row.places for row in self.held_out):
            raise UserError("No token of the held-out texts is masked. Raise data.validation or objective.mask_share.")

    @staticmethod
    def check(config: Config) -> None:
        """Refuse data of pairs, a frozen backbone, and a head that nothing trains."""
        refuse_untrained(config)

    def lay_out(self, numbers: Sequence[int], step: int) -> tuple[list[Masked], list[Tokens]]:
        if self.packed:
            rows = [self.packed[i] for i in numbers]
        else:
            rows = self.work.tokenizer.pairs([("", self.examples[i].query) for i in numbers])
        layout = self.masks(rows, step)
        return layout, [row.tokens for row in layout]

    def backward(self, layout: list[Masked], rows: list[Tokens], step: int) -> Tensor:
        self.counts["masked"] += sum(len(row.places) for row in layout)
        return self.loss.backward(layout, step)

    def held_out_rows(self) -> list[Tokens]:
        return [row.tokens for row in self.held_out]

    def held_out_scores(self) -> Scores:
        """Loss (nats per masked token) and accuracy on the held-out texts, under masks of their own."""
        loss, accuracy = self.loss.scores(self.held_out)
        return {"loss": loss, "accuracy": accuracy}

    def facts(self, steps: Config) -> Config:
        """Masked tokens, and FLOPs with those of the frozen head: its product, and the gradient of its input."""
        masked, flops = self.counts["masked"], steps["flops"]
        flops = None if flops is None else flops + 4 * masked * self.loss.head.numel()
        return {"masked_tokens": masked, "flops": flops}


def blocks(texts: Sequence[str], tokenizer: TextTokenizer) -> list[Tokens]:
    """Return `texts` end to end, each begun by BOS where the tokenizer puts one, cut into blocks of `max_length`.

    As the published code of LLM2Vec lays out its raw text: a block is one sequence to the decoder, so that texts see
    one another in it; what does not fill the last block is left out.
    """
    start = [] if tokenizer.bos is None else [tokenizer.bos]
    pieces: list[np.ndarray] = []
    for k in range(0, len(texts), TOKENIZED):
        pieces += [np.array([*start, *row], dtype=np.int32) for row in tokenizer.plain_ids(texts[k : k + TOKENIZED])]
    ids = np.concatenate([np.empty(0, dtype=np.int32), *pieces])
    roles = np.full(len(ids), TEXT, dtype=np.int8)
    if start and pieces:
        roles[np.cumsum([0, *map(len, pieces[:-1])])] = BOS
    length = tokenizer.max_length
    whole = range(0, len(ids) - length + 1, length)
    if not whole:
        raise UserError(f"objective.packed=true needs {length} tokens for a block, and the texts have {len(ids):,}.")
    return [Tokens(ids[i : i + length].tolist(), roles[i : i + length].tolist()) for i in whole]
