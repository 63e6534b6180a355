"""Prompts of seed examples, and the language model that continues them."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from cli.errors import UserError, nearest
from corpora.copies import first_words
from corpora.triples import Triple
from encoders.backbone import load_tokenizer
from encoders.identity import base_fingerprints
from encoders.precision import best_device, resolve_precision
from encoders.tokens import TextTokenizer
from records.files import stream_seed
from training.held_out import split
from training.objectives.masking import causal_model

Config = dict[str, Any]


def seed_examples(triples: list[Triple], cfg: Config) -> list[Triple]:
    """Return `cfg["seeds"]` examples of the training part, drawn by seed; data of no more examples are taken whole.

    cfg["source"]: of this source alone. Raises `UserError` where the data have no such source, or graded pairs.
    """
    data, count, source = cfg["data"], cfg["seeds"], cfg["source"]
    kept = split(triples, data)[0] if len(triples) > count else triples
    if source is not None:
        names = {name for t in kept for name in (t.source, t.origin)}
        if source not in names:
            raise UserError(f"There is no source '{source}' in data={data['name']}. {nearest(source, names)}")
        kept = [t for t in kept if source in (t.source, t.origin)]
    if any(t.kind == "graded" for t in kept):
        raise UserError(
            f"data={data['name']} holds graded pairs, of which some are no pairs at all. Give pairs or classes."
        )
    drawn = random.Random(stream_seed(cfg["seed"], "specialise seeds")).sample(range(len(kept)), min(count, len(kept)))
    return [kept[i] for i in sorted(drawn)]


def group(example: Triple) -> tuple[str | None, str | None]:
    """Return what the examples of a prompt share: the instruction, and of classes the label."""
    return example.instruction, example.labels[0][0] if example.labels else None


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


class Generator:
    """The causal language model of `model` with its tokenizer, as they are: no adapter.

    facts: which model, by digests, and the format of its weights. positions: tokens that prompt and continuation may
    have together. Raises `UserError` where the base cannot be loaded or has no language-model head.
    """

    def __init__(self, model: Config, precision: str, accelerator: str) -> None:
        device = best_device(accelerator)
        formats = resolve_precision(precision, device)
        self.tokenizer = load_tokenizer(model)
        self.model = causal_model(model, formats.compute)
        self.model.to(device).eval()
        self.model.generation_config = GenerationConfig()  # the base's own would add rules of its own
        self.positions = self.model.config.get_text_config().max_position_embeddings
        self.tokens = TextTokenizer(self.tokenizer, self.positions)
        pieces = self.tokenizer.batch_decode([[i] for i in range(len(self.tokenizer))])
        self.ends = {i for i, piece in enumerate(pieces) if i == self.tokens.eos or "\n" in piece}
        self.facts = {"model": model["path"], **base_fingerprints(model), "precision": formats.name}

    def ids(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt, BOS first where the tokenizer puts one."""
        start = [] if self.tokens.bos is None else [self.tokens.bos]
        return [*start, *self.tokens.plain_ids([prompt])[0]]

    @torch.inference_mode()
    def continued(self, prompts: Sequence[Sequence[int]], most: int, seed: int, **sampling: float) -> list[str | None]:
        """Return what follows each prompt up to its line break or EOS; None where neither came in `most` tokens.

        prompts: lists of ids; sampling: temperature and top_p (Holtzman et al. 2019, arXiv 1904.09751, section 3.1).
        Texts depend on the seed and on the whole batch of prompts.
        """
        width = max(map(len, prompts))
        ids = torch.tensor([[self.tokens.pad] * (width - len(p)) + list(p) for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        torch.manual_seed(seed)
        rows = self.model.generate(
            input_ids=ids.to(self.model.device),
            attention_mask=mask.to(self.model.device),
            max_new_tokens=most,
            do_sample=True,
            top_k=0,
            eos_token_id=sorted(self.ends),
            pad_token_id=self.tokens.pad,
            **sampling,
        )
        return [self._text(row) for row in rows[:, width:].tolist()]

    def _text(self, row: list[int]) -> str | None:
        """The text of the tokens up to the first that ends it; None without one."""
        last = next((k for k, token in enumerate(row) if token in self.ends), None)
        if last is None:
            return None
        return str(self.tokenizer.decode(row[: last + 1], skip_special_tokens=True)).partition("\n")[0].strip()
