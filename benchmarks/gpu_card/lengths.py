"""Lengths of the docstring triples as quantiles, for a machine without the data, and FLOPs of texts of such lengths.

`python -m benchmarks.gpu_card.lengths` makes lengths.json. Lengths are tokens of the embedded tokenizer, cut at 512
and not scaled: it makes 4.0 characters a token of docstrings, and large vocabularies are taken to make about as many
of English, so that a passage is as long here as there. Throughput depends on the mix; the ids do not matter.
"""

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from encoders.chunking import by_token_budget
from training.cost.flops import Polynomial, TrainingFlops, Work, training_flops

FILE = Path(__file__).with_name("lengths.json")
COLUMNS = ("query", "positive", "negative")
STEPS = 256  # quantiles of a column
LONGEST = 512
TRIPLES = 4096  # drawn at random


def batch_lengths(queries: int, longest: int, seed: int, negatives: int = 1) -> list[int]:
    """Return the lengths of a batch: those of `queries` queries, of their positives, of `negatives` hard ones each."""
    table = json.loads(FILE.read_text(encoding="utf-8"))
    draw = np.random.default_rng(seed)
    columns = [draw.choice(table[name], queries) for name in (*COLUMNS[:2], *COLUMNS[2:] * negatives)]
    return np.minimum(np.concatenate(columns), longest).tolist()


def chunked(lengths: list[int], budget: int, most: int | None) -> list[list[int]]:
    """Return the lengths in each chunk that padded execution makes of a batch."""
    return [[lengths[i] for i in chunk] for chunk in by_token_budget(lengths, budget, most)]


def share(lengths: list[int], budget: int, most: int | None, tokens: int, number: int) -> list[int]:
    """Return the lengths in every k-th chunk of a batch, about `tokens` tokens in all; `number` says where it begins.

    Chunks are sorted by length, so every k-th of them has the composition of all. They stay the chunks that they
    were, since a chunk is full by its own first text alone.
    """
    chunks = chunked(lengths, budget, most)
    stride = min(len(chunks), max(1, round(sum(lengths) / tokens)))
    return [n for chunk in chunks[number % stride :: stride] for n in chunk]


def heaviest(lengths: list[int], budget: int, most: int | None) -> list[int]:
    """Return the lengths in the chunk of the longest texts and in that of the most texts: where memory peaks.

    A backbone's activations grow with tokens, a head's with texts.
    """
    chunks = chunked(lengths, budget, most)
    return [*chunks[0], *max(chunks, key=len)]


def counted(config: dict[str, Any]) -> TrainingFlops:
    """Return `training_flops(config)` in a fraction of its time; all layers of `model.architecture` are alike."""
    model = config["model"]
    shapes = [{**model, "architecture": {**model["architecture"], "num_hidden_layers": n}} for n in (1, 2)]
    one, two = (training_flops({**config, "model": shape}) for shape in shapes)
    more = model["architecture"]["num_hidden_layers"] - 1

    def all_layers(a: Polynomial, b: Polynomial) -> Polynomial:
        return Polynomial(*(x + more * (y - x) for x, y in zip(astuple(a), astuple(b), strict=True)))

    return TrainingFlops(all_layers(one.forward, two.forward), all_layers(one.both, two.both), one.again)


def real_work(lengths: list[int], budget: int, most: int | None) -> Work:
    """The work of texts of `lengths` without any padding, in as many chunks as padded execution has."""
    return Work().plus(chunked(lengths, budget, most))


def places_a_token(lengths: list[int], budget: int, most: int | None) -> float:
    """Padded places over real tokens."""
    return sum(len(chunk) * max(chunk) for chunk in chunked(lengths, budget, most)) / sum(lengths)


def main() -> None:
    """Measure the docstring triples and write the table."""
    from benchmarks.speed.step import encoder_of
    from benchmarks.speed.work import batches, texts_of
    from cli.compose import composed, plain
    from records.atomic import write_text

    _, tokenizer = encoder_of(plain(composed("train", [f"max_length={LONGEST}", "accelerator=cpu"])))
    (triples,) = batches("docstrings", TRIPLES, 1)
    table: dict[str, object] = {"source": f"{TRIPLES:,} docstring triples, assets/tiny, cut at {LONGEST}"}
    lengths = np.reshape([len(row) for row in tokenizer(texts_of(triples))], (len(COLUMNS), TRIPLES))
    middles = (np.arange(STEPS) + 0.5) / STEPS
    table |= {
        name: np.quantile(n, middles, method="nearest").tolist() for name, n in zip(COLUMNS, lengths, strict=True)
    }
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items())
    write_text(FILE, f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
