"""Objective `mntp`: masked next-token prediction, the first stage of LLM2Vec (arXiv 2404.05961, section 2.1)."""

from typing import Any

from omegaconf import DictConfig
from torch import Tensor

from cli.errors import UserError
from corpora.raw_text import read_texts, refuse_pairs
from corpora.triples import Triple
from encoders.lm_head import lm_head
from encoders.tokens import Tokens
from poolers.shared.registry import pooler_names
from records.run_folder import RunFolder
from training.batches import BatchOrder, blocks
from training.frozen_states import trains
from training.limits import check_contrastive
from training.module import POSITION, ContrastiveModule
from training.objectives.masking import Masked, MaskedBatch, Masking, masking
from training.set_up import SetUp
from training.stage import Scores, TextStage, train_stage
from training.start import check_trainer, start

Config = dict[str, Any]
HELD_OUT = -1  # in place of a step: the masks of the held-out texts, the same at every scoring


def train(cfg: DictConfig) -> None:
    """Train the stage of `cfg` unless its folder says it is finished; continue it where it was interrupted."""
    start(cfg, check_mntp, train_mntp, read_texts)


def train_mntp(config: Config, folder: RunFolder) -> None:
    """Train one MNTP stage into `folder`."""
    train_stage(config, folder, MaskedStage)


def check_mntp(config: Config) -> None:
    """Refuse numbers that do not fit, data of pairs, a frozen backbone, and a head, which nothing would train."""
    check_contrastive(config)
    refuse_pairs(config["data"])
    check_trainer(config)
    if config["backbone"]["frozen"]:
        raise UserError("backbone.frozen=true trains a head alone; objective=mntp has none. Take one of them away.")
    name = config["pooler"]["name"]
    if name in pooler_names() and trains(name):
        raise UserError(
            f"objective=mntp predicts tokens and pools nothing, so the head of pooler={name} would stay untrained. "
            "Give pooler=mean; a later stage may take any other."
        )


class MaskedModule(ContrastiveModule):
    """One optimiser step on the masked tokens of one global batch."""

    position = (*POSITION, "masked")
    work: MaskedBatch

    def __init__(self, work: MaskedBatch, texts: list[Triple], order: BatchOrder, cfg: Config, masks: Masking) -> None:
        super().__init__(work, texts, order, cfg)
        self.masks = masks
        self.masked = 0  # tokens so far

    def prepared(self, step: int) -> tuple[list[int], list[Masked], list[Tokens]]:
        """The examples of a step, their texts with masks, and the tokens that are run."""
        examples = self.order.batch(step)
        rows = self.masks(self.tokens_of(examples), step)
        return examples, rows, [row.tokens for row in rows]

    def tokens_of(self, examples: list[int]) -> list[Tokens]:
        """The tokens of texts, by number."""
        return self.work.tokenize([("", self.triples[i].query) for i in examples])

    def learn(self, made: list[Masked], rows: list[Tokens], step: int) -> Tensor:
        """Add the gradient of the step's loss to the parameters; return the loss."""
        self.masked += sum(len(row.places) for row in made)
        return self.work.masked_backward(made, step)


class BlockModule(MaskedModule):
    """The same on blocks of packed text: an example is a block, and its tokens are there already."""

    def __init__(self, work: MaskedBatch, packed: list[Tokens], cfg: Config, masks: Masking) -> None:
        names = [Triple(f"block {i}", f"block {i}", (), "packed") for i in range(len(packed))]
        order = BatchOrder(["packed"] * len(packed), cfg["trainer"]["global_batch_size"], cfg["seed"], False)
        super().__init__(work, names, order, cfg, masks)
        self.packed = packed

    def tokens_of(self, examples: list[int]) -> list[Tokens]:
        """The tokens of blocks, by number."""
        return [self.packed[i] for i in examples]


def masked_batch(made: SetUp) -> tuple[MaskedBatch, Masking]:
    """How a global batch is run, with the base's own head, and how its texts are masked."""
    config, work = made.config, made.work(MaskedBatch)
    work.head = lm_head(made.encoder.backbone, config["model"])
    return work, masking(config["objective"], made.tokenizer.tokenizer, len(work.head), config["seed"])


class MaskedStage(TextStage):
    """MNTP with the base's own frozen language-model head."""

    module: MaskedModule

    def __init__(self, made: SetUp, texts: list[Triple], held_out: list[Triple], order: BatchOrder) -> None:
        work, masks = masked_batch(made)
        if made.config["objective"]["packed"]:
            kept, apart = (blocks([t.query for t in some], made.tokenizer) for some in (texts, held_out))
            self.module = BlockModule(work, kept, made.config, masks)
        else:
            self.module = MaskedModule(work, texts, order, made.config, masks)
            apart = work.tokenize([("", t.query) for t in held_out])
        self.held_out = masks(apart, HELD_OUT)
        if not any(row.places for row in self.held_out):
            raise UserError("No token of the held-out texts is masked. Raise data.validation or objective.mask_share.")

    def held_out_scores(self) -> Scores:
        """Loss (nats a masked token) and accuracy on the held-out texts, under masks of their own."""
        loss, accuracy = self.module.work.scores(self.held_out)
        return {"loss": loss, "accuracy": accuracy}

    def collapse(self, loss: float, before: Scores, after: Scores) -> str | None:
        """A held-out loss that did not fall."""
        if after["loss"] < before["loss"]:
            return None
        return (
            f"held-out loss {after['loss']:.3f} is not below {before['loss']:.3f}, where it began: nothing was learned"
        )

    def further_facts(self, facts: Config) -> Config:
        """Masked tokens, and FLOPs with those of the frozen head: its product, and the gradient of its input."""
        masked, flops = self.module.masked, facts["flops"]
        head = 4 * masked * self.module.work.head.numel()
        return {"masked_tokens": masked, "flops": None if flops is None else flops + head}
