"""Real tokens a second of a training step: ours, sentence-transformers', the reference trainer's, and the limits.

    python -m benchmarks.training_speed --quick            # a smoke test
    python -m benchmarks.training_speed [--write]          # --write: into docs/performance.md
    ... --models tiny --data docstrings --batches 64 --cells eos-causal --precision fp32 --dropout 0 --rounds 9

Each row is a ratio within a round, on the same batch of texts in the same process, and its spread over rounds. Before
a row is timed, the loss of the first batch in float32 without dropout must agree between trainers to 1e-3.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.limit import DenseStep, MatrixRate, useful_flops
from benchmarks.page import publish, stamp, table
from benchmarks.peer import PeerStep
from benchmarks.reference_step import ReferenceStep
from benchmarks.rounds import Rates, in_turn, quickest, ratio, spread
from benchmarks.setting import MODELS, Setting
from benchmarks.step import OurStep, Step, start_alike
from benchmarks.work import SOURCES, batches, described, missing
from corpora.triples import Triple
from records.errors import UserError, guard
from records.quiet import quieten

KERNELS = ("sdpa", "eager")
MINI_BATCHES = ({"mini_batch_size": 16}, {"mini_batch_size": 32}, {"mini_batch_size": 64}, {"mini_batch_num_tokens": 2048})
TOLERANCE = 1e-3
HEAD = ["model", "cell", "data", "batch", "ours, tokens/s", "compared with", "tokens/s", "ours / this"]
Made = Callable[[Setting], Step]


def main() -> None:
    """Measure every chosen row and print the table."""
    quieten()
    args = arguments()
    torch.set_num_threads(args.threads)
    head, rows, notes = stamp(), [], []
    for source in args.data:
        reason = missing(source)
        if reason:
            notes.append(f"* {source}: skipped, {reason}.")
            continue
        for model in args.models:
            for batch in args.batches:
                for cell in args.cells:
                    measure(args, Setting(model, *cell.split("-")), source, batch, rows, notes)
    publish("training_speed", "Training speed", "\n\n".join([head, explained(args), table(HEAD, rows), "\n".join(notes)]), args.write)


if __name__ == "__main__":
    guard(main)
