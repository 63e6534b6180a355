"""Seed examples of a family, and the prompts that show some of them."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from cli.errors import UserError, nearest
from corpora.triples import Triple
from corpora.words import first_words
from records.streams import stream_seed
from training.mix_order import split

Config = dict[str, Any]


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
