"""Texts a second of evaluation's encoder, against SentenceTransformer.encode at its best, the limit, and one another.

    python -m benchmarks.speed.encoding_speed --quick       # a smoke test
    python -m benchmarks.speed.encoding_speed --write       # into docs/tables/performance.md

As benchmarks/speed/training_speed.py: ratios within a round, on the same texts, in one process. Before anything is
timed, the vectors in float32 must agree to 1e-4.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from benchmarks.arguments import whole
from benchmarks.page import publish, stamp, table
from benchmarks.rounds import Contestant, in_turn, quickest, ratio, spread
from benchmarks.speed.comparisons import KERNELS, ROWS
from benchmarks.speed.dense_limit import DenseEncoding
from benchmarks.speed.sentence_transformers_step import sentence_transformer
from benchmarks.speed.setting import Setting, speed_parser
from benchmarks.speed.step import encoder_of
from benchmarks.speed.work import batches, described, missing, texts_of
from cli.errors import UserError, guard
from cli.quiet import quieten
from corpora.triples import Triple
from encoders.fast.same_numbers import spare_gates
from encoders.precision import store_as_computed
from encoders.text_encoder import TextEncoder

TOLERANCE = 1e-4  # of an entry of a unit vector
SIZES = (8, 16, 32, 64, 128, 256)  # texts of a batch of SentenceTransformer.encode
HEAD = ["model, data", "this", "texts/s", "compared with", "texts/s", "this / compared"]
EXPLAINED = """Queries, positives and negatives in one list, no LoRA (ours merges it), from texts to float32 unit
vectors in numpy; sentence-transformers at the kernel and the batch size (8 to 256) that were quickest. The dense limit:
as many tokens in texts of one length through the stock model, without tokenising. mteb is not in it. Ratio: median over
rounds (10th to 90th percentile), in turn in one process."""
Encode = Callable[[Sequence[str]], np.ndarray]


def main() -> None:
    """Measure and print one table."""
    quieten()
    args = arguments()
    torch.set_num_threads(args.threads)
    taken, rows, notes = stamp(), [], []
    count, queries = (2, 8) if args.quick else (args.rounds, args.queries)
    for source in args.data:
        reason = missing(source)
        if reason:
            notes.append(f"* {source}: skipped, {reason}.")
            continue
        work = batches(source, queries, count)
        for model in args.models[:1] if args.quick else args.models:
            setting = Setting(model, max_length=args.max_length, precision=args.precision)
            lines, note = measured(setting, f"{model}, {source}", work)
            rows += lines
            notes.append(note)
    how = f"max_length={args.max_length}, precision={args.precision}. "
    body = [taken, how + EXPLAINED, table(HEAD, rows), "\n".join(notes)]
    publish("encoding_speed", "Encoding speed", "\n\n".join(body), args.write)


def measured(setting: Setting, where: str, work: list[list[Triple]]) -> tuple[list[list[str]], str]:
    """Table lines of one model and source, and a note with the texts and what was quickest."""
    largest = difference(replace(setting, precision="fp32"), texts_of(work[0]))
    multilayer = replace(setting, pooler="multilayer", attn="bi")
    theirs, dense = peers(setting), dense_runs(setting)
    best, limit = quickest(theirs, work[0], again=1), quickest(dense, work[0], again=1)
    run = {
        "eos x causal": timed(ours(setting)),
        "sentence-transformers": theirs[best],
        "dense limit": dense[limit],
        "multilayer x bi": timed(ours(multilayer)),
        "eos x bi": timed(ours(replace(multilayer, pooler="eos"))),
    }
    rates = in_turn(run, work, work[0])
    pairs = [
        ("eos x causal", "sentence-transformers"),
        ("eos x causal", "dense limit"),
        ("multilayer x bi", "eos x bi"),
    ]
    speed = {name: f"{spread(r).median:,.0f}" for name, r in rates.items()}
    lines = [[where, a, speed[a], b, speed[b], str(ratio(rates, a, b))] for a, b in pairs]
    text = described(encoder_of(setting.config())[1], work[0])
    note = f"{text}. Quickest: sentence-transformers: {best}; dense limit: {limit}. Float32 vectors: {largest:.0e}."
    return lines, f"* {where}: {note}"


def ours(setting: Setting) -> Encode:
    """`TextEncoder.encode`, as evaluate.py calls it."""
    encoder, tokenizer = encoder_of(setting.config())
    store_as_computed(encoder.backbone, encoder.compute)  # as encoders/loading.py does for evaluation
    spare_gates(encoder.backbone, encoder.compute)
    return TextEncoder(encoder.eval(), tokenizer, "", setting.config()["token_budget"]).encode


def theirs_of(setting: Setting, kernel: str, size: int) -> Encode:
    """`SentenceTransformer.encode` with batches of `size`."""
    model = sentence_transformer(setting.config(), kernel, adapted=False)
    return partial(model.encode, batch_size=size, normalize_embeddings=True, show_progress_bar=False)


def peers(setting: Setting) -> dict[str, Contestant]:
    """sentence-transformers with either kernel and every batch size."""
    return {f"{k}, batch_size={n}": timed(theirs_of(setting, k, n)) for k in KERNELS for n in SIZES}


def dense_runs(setting: Setting) -> dict[str, Contestant]:
    """The dense limit with either kernel, in smaller and larger passes."""
    cfg = setting.config()
    return {f"{k}, passes of {n} tokens": DenseEncoding(cfg, k, n) for k in KERNELS for n in ROWS}


def timed(encode: Encode) -> Contestant:
    """Encode the texts of a batch of triples; return how many they are."""

    def run(batch: Sequence[Triple]) -> float:
        return float(len(encode(texts_of(batch))))

    return run


def difference(setting: Setting, texts: list[str]) -> float:
    """Largest difference of an entry of their vectors and ours; raises `UserError` above `TOLERANCE`."""
    own = ours(setting)(texts)
    largest = max(float(np.abs(theirs_of(setting, kernel, 16)(texts) - own).max()) for kernel in KERNELS)
    if not largest <= TOLERANCE:
        raise UserError(f"sentence-transformers' vectors differ from ours by {largest:.1e}.")
    return largest


def arguments() -> argparse.Namespace:
    """The texts to encode, and the settings."""
    queries = {"type": whole, "default": 256, "help": "of a round; a round encodes three times as many texts"}
    flags = ("--models", "--data", "--rounds", "--max-length", "--precision", "--threads", "--quick")
    return speed_parser("encoding_speed", *flags, queries=queries).parse_args()


if __name__ == "__main__":
    guard(main)
