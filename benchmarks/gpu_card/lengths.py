"""How long texts are: the docstring triples' lengths as quantiles, for a machine that does not have the data.

`python -m benchmarks.gpu_card.lengths` makes lengths.json. Lengths are tokens of the embedded tokenizer, cut at 512
and not scaled: it makes 4.0 characters a token of docstrings, and large vocabularies are taken to make about as many
of English, so that a passage is as long here as there. Throughput depends on the mix; the ids do not matter.
"""

import json
from pathlib import Path

import numpy as np

from encoders.chunking import by_token_budget

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


def share(lengths: list[int], budget: int, most: int | None, tokens: int, number: int) -> list[int]:
    """Return the lengths in every k-th chunk of a batch, about `tokens` tokens in all; `number` says where it begins.

    Chunks are sorted by length, so every k-th of them has the composition of all. They stay the chunks that they
    were, since a chunk is full by its own first text alone.
    """
    chunks = by_token_budget(lengths, budget, most)
    stride = min(len(chunks), max(1, round(sum(lengths) / tokens)))
    return [lengths[i] for chunk in chunks[number % stride :: stride] for i in chunk]


def heaviest(lengths: list[int], budget: int, most: int | None) -> list[int]:
    """Return the lengths in the chunk of the longest texts and in that of the most texts: where memory peaks.

    A backbone's activations grow with tokens, a head's with texts.
    """
    chunks = by_token_budget(lengths, budget, most)
    return [lengths[i] for chunk in (chunks[0], max(chunks, key=len)) for i in chunk]


def main() -> None:
    """Measure the docstring triples and write the table."""
    from benchmarks.speed.step import encoder_of
    from benchmarks.speed.work import batches
    from cli.compose import composed, plain
    from records.atomic import write_text

    _, tokenizer = encoder_of(plain(composed("train", [f"max_length={LONGEST}", "accelerator=cpu"])))
    (triples,) = batches("docstrings", TRIPLES, 1)
    table: dict[str, object] = {"source": f"{TRIPLES:,} docstring triples, assets/tiny, cut at {LONGEST}"}
    for name in COLUMNS:
        texts = [t.negatives[0] if name == "negative" else getattr(t, name) for t in triples]
        lengths = [len(row) for row in tokenizer(texts)]
        middles = (np.arange(STEPS) + 0.5) / STEPS
        table[name] = np.quantile(lengths, middles, method="nearest").tolist()
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items())
    write_text(FILE, f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
