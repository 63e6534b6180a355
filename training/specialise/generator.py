"""Prompts of seed examples, and the language model that continues them, each with random numbers of its own."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cli.errors import UserError, nearest
from corpora.triples import Triple
from corpora.words import first_words
from encoders.attention.switch import knows_sdpa
from encoders.backbone import load_backbone, load_config, load_tokenizer
from encoders.identity import base_fingerprints
from encoders.precision import best_device, resolve_precision, store_as_computed
from encoders.tokens import TextTokenizer
from records.streams import stream_seed
from training.mix_order import split
from training.objectives.lm_head import lm_head, logits_at

Config = dict[str, Any]
FEW = 512  # tokens that mostly hold the nucleus


def seed_examples(triples: list[Triple], cfg: Config) -> list[Triple]:
    """Return `cfg["seeds"]` examples of the training part, drawn by seed; data of no more examples are taken whole.

    cfg["source"]: of this source alone. Raises `UserError` where the data have no such source, or graded pairs.
    """
    data, count, source = cfg["data"], cfg["seeds"], cfg["source"]
    kept = split(triples, data)[0] if len(triples) > count else triples
    if source is not None:
        names = {name for t in kept for name in (t.source, t.source.partition("/")[0])}
        if source not in names:
            raise UserError(f"There is no source '{source}' in data={data['name']}. {nearest(source, names)}")
        kept = [t for t in kept if source in (t.source, t.source.partition("/")[0])]
    if any(t.kind == "graded" for t in kept):
        raise UserError(
            f"data={data['name']} holds graded pairs, of which some are no pairs at all. Give pairs or classes."
        )
    drawn = random.Random(stream_seed(cfg["seed"], "specialise seeds")).sample(range(len(kept)), min(count, len(kept)))
    return [kept[i] for i in sorted(drawn)]


def group(example: Triple) -> tuple[str | None, tuple[str, ...]]:
    """Return what the examples of a prompt share: the instruction, and of classes the label."""
    return example.instruction, example.labels[:1]


def shown(seeds: Sequence[Triple], rng: np.random.Generator, count: int) -> list[Triple]:
    """Return one of `seeds` and `count` - 1 others of its group, or as many as there are, in the order of the draw."""
    first = seeds[int(rng.integers(len(seeds)))]
    others = [t for t in seeds if t is not first and group(t) == group(first)]
    chosen = rng.permutation(len(others))[: count - 1].tolist()
    return [first, *(others[i] for i in chosen)]


def prompt_of(examples: Sequence[Triple], cfg: Config) -> str:
    """Return the task, the examples as query and answer, and the name of the query that is to follow."""
    task = examples[0].instruction if cfg["task"] is None else cfg["task"]
    query, answer, words = cfg["query_name"], cfg["answer_name"], cfg["example_words"]
    pairs = [f"{query}: {first_words(t.query, words)}\n{answer}: {first_words(t.positive, words)}" for t in examples]
    return "\n\n".join([*([task] if task else []), *pairs, f"{query}:"])


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
