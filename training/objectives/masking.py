"""Mask tokens as a function of (seed, step) and nothing else; predict them with the base's language-model head."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from cli.errors import UserError, reading
from corpora.raw_text import refuse_pairs
from encoders.backbone import model_path, of_hub
from encoders.tokens import Batch, Tokens
from poolers.shared.base import TEXT
from poolers.shared.registry import pooler_class, pooler_names
from records.files import stream_seed
from training.large_batch import LargeBatch, rank, world_size

Config = dict[str, Any]
TOKENIZED = 1000  # texts at a time
SCALED = ("final_logit_softcapping", "logit_scale", "logits_scaling")  # logits that are more than a product
UNDERSCORE = "_"  # what LLM2Vec takes for decoders that were trained without a mask token


@dataclass(frozen=True)
class Masked:
    """A text with tokens replaced. places: of the masked tokens; targets: what stood there."""

    tokens: Tokens
    places: list[int]
    targets: list[int]


@dataclass(frozen=True)
class Masking:
    """share: of the tokens that can be predicted. by_mask, by_random: of the masked ones; the rest stay as they are.

    mask: the mask token's id. others: [W] ids that a random replacement is drawn from, uniformly.
    """

    mask: int
    others: np.ndarray
    share: float
    by_mask: float
    by_random: float
    seed: int

    def __call__(self, rows: Sequence[Tokens], step: int) -> list[Masked]:
        """Mask each row; the step and the seed decide what is drawn.

        Each token of the text that has a token before it is masked with probability `share`, independently (Devlin et
        al. 2018, arXiv 1810.04805, appendix A.1, for the replacements). BOS, EOS and instruction are never masked.
        """
        random = np.random.default_rng(stream_seed(self.seed, "mask", step))
        return [self._masked(row, random) for row in rows]

    def _masked(self, row: Tokens, random: np.random.Generator) -> Masked:
        chosen, how = random.random(len(row)), random.random(len(row))
        other = random.integers(len(self.others), size=len(row))
        ids = list(row.ids)
        places = [i for i in range(1, len(row)) if row.roles[i] == TEXT and chosen[i] < self.share]
        for i in places:
            if how[i] < self.by_mask:
                ids[i] = self.mask
            elif how[i] < self.by_mask + self.by_random:
                ids[i] = int(self.others[other[i]])
        return Masked(Tokens(ids, row.roles), places, [row.ids[i] for i in places])


def masking(objective: dict, tokenizer: PreTrainedTokenizerBase, vocabulary: int, seed: int) -> Masking:
    """Return the masking of `objective`. vocabulary: rows of the base's embeddings.

    Raises `UserError` for a mask token that is none of the vocabulary, and for shares above one.
    """
    by_mask, by_random = objective["replaced_by_mask"], objective["replaced_by_random"]
    if by_mask + by_random > 1:
        raise UserError("objective.replaced_by_mask and replaced_by_random add up to more than 1. Lower one of them.")
    special = set(tokenizer.all_special_ids)
    others = np.array([i for i in range(min(len(tokenizer), vocabulary)) if i not in special])
    mask = mask_id(objective["mask_token"], tokenizer, vocabulary)
    return Masking(mask, others, objective["mask_share"], by_mask, by_random, seed)


def mask_id(token: str | None, tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> int:
    """Return the id of `token`; of None: the tokenizer's own mask token, or that of "_" where it has none."""
    word = token or tokenizer.mask_token or UNDERSCORE
    number = tokenizer.get_vocab().get(str(word))
    if number is None or number >= vocabulary:
        raise UserError(f"objective.mask_token={word} is no token of the base. Give one that is, such as '_' or '~'.")
    return number


def refuse_untrained(config: Config) -> None:
    """Refuse data of pairs, a frozen backbone, and a head: where tokens are predicted, nothing trains it."""
    refuse_pairs(config["data"])
    objective, name = config["objective"]["name"], config["pooler"]["name"]
    if config["backbone"]["frozen"] or (name in pooler_names() and pooler_class(name).needs_training):
        raise UserError(
            f"objective={objective} predicts tokens and pools nothing, so no head is trained. Give pooler=mean and "
            "backbone.frozen=false; a later stage may take any other."
        )


class MaskedLoss:
    """Cross entropy of masked tokens, each predicted from the state of the token before it. head: [V, D].

    Every text is a sequence of its own in every kernel, so no token sees, or is predicted from, another text.
    """

    def __init__(self, work: LargeBatch, head: Tensor) -> None:
        self.work, self.encoder, self.head = work, work.encoder, head

    def backward(self, rows: Sequence[Masked], step: int) -> Tensor:
        """Add the gradient of the mean loss over all masked tokens of `rows` to the parameters; return the loss.

        It goes chunk by chunk, since the loss is a sum over tokens.
        """
        total = max(1, sum(len(r.places) for r in rows))
        loss, tokens = torch.zeros((), device=self.head.device), [r.tokens for r in rows]
        chunks, self.encoder.texts_of_step = self.work.chunks(tokens), len(rows)

        for k in range(rank(), len(chunks), world_size()):
            self.work.seed_chunk(step, k)
            some = [rows[i] for i in chunks[k]]
            if any(r.places for r in some):
                part = F.cross_entropy(self.logits(some), self.targets(some), reduction="sum") / total
                part.backward()
                loss += part.detach()
        if world_size() > 1:
            dist.all_reduce(loss)
        self.work.sum_gradients()
        return loss

    def logits(self, rows: Sequence[Masked]) -> Tensor:
        """[M, V] float32 logits for the masked tokens of `rows`, text by text: from the states at i - 1 for token i."""
        batch = self.work.tokenizer.batch([r.tokens for r in rows]).to(self.head.device)
        states = self.encoder.run_backbone(batch)
        text, place = before(batch, rows)
        with self.encoder.precision():
            return logits_at(states[text, place], self.head)

    def targets(self, rows: Sequence[Masked]) -> Tensor:
        """[M] ids of the masked tokens."""
        return torch.tensor([t for r in rows for t in r.targets], device=self.head.device)

    def scores(self, rows: Sequence[Masked]) -> tuple[float, float]:
        """Mean loss (nats) and accuracy over all masked tokens of `rows`, without dropout."""
        losses, hits = list[float](), list[Tensor]()
        for _, logits, targets in self._by_chunk(rows):
            losses.append(float(F.cross_entropy(logits, targets, reduction="sum")))
            hits.append(logits.argmax(dim=-1) == targets)
        total = sum(map(len, hits))
        return sum(losses) / total, int(torch.cat(hits).sum()) / total

    def nats(self, rows: Sequence[Masked]) -> list[float]:
        """Loss (nats) of each row, summed over its masked tokens, without dropout."""
        of_row = [0.0] * len(rows)
        for texts, logits, targets in self._by_chunk(rows):
            losses = F.cross_entropy(logits, targets, reduction="none").split([len(rows[i].places) for i in texts])
            for i, of_tokens in zip(texts, losses, strict=True):
                of_row[i] = float(of_tokens.double().sum())
        return of_row

    @torch.no_grad()
    def _by_chunk(self, rows: Sequence[Masked]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Yield the numbers of its rows, logits and targets of each chunk that has masked tokens, without dropout."""
        training = self.encoder.training
        self.encoder.eval()
        for texts in self.work.chunks([r.tokens for r in rows]):
            chosen = [rows[i] for i in texts]
            if any(r.places for r in chosen):
                yield texts, self.logits(chosen), self.targets(chosen)
        self.encoder.train(training)


def before(batch: Batch, rows: Sequence[Masked]) -> tuple[Tensor, Tensor]:
    """(text, column) of the state that predicts each masked token: the token before it, padding on the left counted."""
    starts = batch.attention_mask.argmax(dim=1).tolist()
    places = [(b, starts[b] + i - 1) for b, row in enumerate(rows) for i in row.places]
    pairs = torch.tensor(places, dtype=torch.long, device=batch.roles.device).view(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def causal_model(model: dict[str, Any], dtype: torch.dtype) -> Any:
    """Return the whole model of `model.path` on the CPU. Raises `UserError` where it has no head."""
    path = model_path(model["path"])
    settings: dict[str, Any] = {"dtype": dtype, "use_safetensors": True, "output_loading_info": True}
    with reading(path, "Name a base with a language-model head."):
        loaded: Any = AutoModelForCausalLM.from_pretrained(path, **of_hub(model), **settings)
    if loaded[1]["missing_keys"]:
        raise UserError(f"{path} has no language-model head, which is needed here. Name a base that has one.")
    return loaded[0]


def lm_head(backbone: PreTrainedModel, model: dict[str, Any]) -> Tensor:
    """Return the frozen weight [V, D] of the head, in the format and on the device of `backbone`.

    Raises `UserError` where the base has none, and for a family whose logits are more than a product with it.
    """
    config = backbone.config.get_text_config()
    scaled = [key for key in SCALED if getattr(config, key, None) not in (None, 1.0)]
    if scaled:
        raise UserError(f"The logits of {config.model_type} are changed by {scaled[0]}, which is not known here.")
    head = causal_model(model, backbone.dtype).get_output_embeddings()
    if head.bias is not None:
        raise UserError(f"The logits of {model['path']} have a bias, which is not known here.")
    weight: Tensor = head.weight.detach()
    return weight.to(backbone.device)


def logits_at(states: Tensor, head: Tensor) -> Tensor:
    """[M, V] float32 logits of states [M, D]; the product is in the format of autocast, or of the head."""
    kind = states.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else head.dtype
    return torch.nn.functional.linear(states.to(dtype), head.to(dtype)).float()
