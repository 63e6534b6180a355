"""A causal language model on its own head that continues prompts, each with random numbers of its own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from encoders.attention.kernels import knows_sdpa
from encoders.backbone import load_backbone, load_config, load_tokenizer
from encoders.identity import base_fingerprints
from encoders.lm_head import lm_head, logits_at
from encoders.precision import best_device, resolve_precision, store_as_computed
from encoders.tokens import TextTokenizer

Config = dict[str, Any]
FEW = 512  # tokens that mostly hold the nucleus


def sampled(logits: Tensor, uniform: Tensor, temperature: float, top_p: float) -> Tensor:
    """Return [B] the tokens at which the cumulative probability of the nucleus passes `uniform`, [B] in [0, 1).

    logits: [B, V]. The nucleus holds the most probable tokens, as few as have `top_p` of the probability together
    (Holtzman et al., arXiv 1904.09751, section 3.1), the most probable first.
    """
    every = (logits.double() / temperature).softmax(-1)
    for count in (min(FEW, every.shape[1]), every.shape[1]):  # all are sorted only where they must be
        probability, tokens = every.topk(count)
        upto = probability.cumsum(-1)
        if bool((upto[:, -1] >= top_p).all()):
            break
    mass = probability.masked_fill(upto - probability >= top_p, 0.0).cumsum(-1)
    place = torch.searchsorted(mass, uniform[:, None].to(mass) * mass[:, -1:], right=True)
    return tokens.gather(1, place.clamp(max=count - 1))[:, 0]


class Generator:
    """The decoder of `model` with its language-model head and tokenizer, as they are: no adapter.

    facts: which model, by digests, and the format of its products. positions: tokens that prompt and continuation may
    have together. Raises `UserError` where the base has no head, or one that is more than a product.
    """

    def __init__(self, model: Config, precision: str, accelerator: str) -> None:
        self.device = best_device(accelerator)
        formats = resolve_precision(precision, self.device)
        shape = load_config(model)
        model = {**model, "attn_implementation": "sdpa" if knows_sdpa(shape) else "eager"}
        self.backbone: Any = load_backbone(model, formats.weights).to(self.device)  # type: ignore[arg-type]
        self.head, self.compute = lm_head(self.backbone, model), formats.compute
        store_as_computed(self.backbone, self.compute)
        self.tokenizer, self.positions = load_tokenizer(model), shape.max_position_embeddings
        self.tokens = TextTokenizer(self.tokenizer, self.positions)
        pieces = self.tokenizer.batch_decode([[i] for i in range(len(self.head))])
        ends = [i == self.tokens.eos or "\n" in piece for i, piece in enumerate(pieces)]
        self.ends = torch.tensor(ends, device=self.device)
        self.facts = {"model": model["path"], **base_fingerprints(model), "precision": formats.name}

    def ids(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt, BOS first where the tokenizer puts one."""
        start = [] if self.tokens.bos is None else [self.tokens.bos]
        return [*start, *self.tokens.plain_ids([prompt])[0]]

    @torch.inference_mode()
    def continued(
        self, prompts: Sequence[Sequence[int]], draws: np.ndarray, temperature: float, top_p: float
    ) -> list[str | None]:
        """Return what follows each prompt up to its line break or EOS; None where neither came.

        prompts: B lists of ids; draws: [B, S] in [0, 1), one for each of at most S new tokens. The same batch gives
        the same texts; other batch mates move the last bits of logits.
        """
        count, width = len(prompts), max(map(len, prompts))
        ids = torch.full((count, width), self.tokens.pad, device=self.device)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt, device=self.device)
            mask[row, width - len(prompt) :] = 1
        positions, uniform = (mask.cumsum(-1) - 1).clamp(min=0), torch.from_numpy(draws).to(self.device)
        written = torch.full(draws.shape, self.tokens.pad, device=self.device)
        rows, going, cache = torch.arange(count, device=self.device), torch.ones_like(ids[:, 0]).bool(), None
        for step in range(draws.shape[1]):
            with torch.autocast(self.device.type, self.compute, enabled=self.compute is not torch.float32):
                out = self.backbone(
                    input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
                )
                logits = logits_at(out.last_hidden_state[:, -1], self.head)
            written[rows, step] = sampled(logits, uniform[rows, step], temperature, top_p)
            going[rows] &= ~self.ends[written[rows, step]]
            left, cache = going[rows], out.past_key_values
            if not left.any():
                break
            if 2 * left.sum() <= len(rows):  # those that ended cost time
                cache.batch_select_indices(left.nonzero()[:, 0])
                rows, mask, positions = rows[left], mask[left], positions[left]
            ids, positions = written[rows, step, None], positions[:, -1:] + 1
            mask = torch.cat([mask, torch.ones_like(ids)], dim=1)
        return [None if more else self._text(row) for row, more in zip(written.tolist(), going.tolist(), strict=True)]

    def _text(self, row: list[int]) -> str:
        """The text of the tokens up to the first that ends it."""
        last = next(k for k, token in enumerate(row) if self.ends[token])
        return str(self.tokenizer.decode(row[: last + 1], skip_special_tokens=True)).partition("\n")[0].strip()
