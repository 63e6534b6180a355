"""Texts a second of evaluation's encoder, against SentenceTransformer.encode at its best, the limit, and one another.

    python -m benchmarks.speed.encoding_speed --quick       # a smoke test
    python -m benchmarks.speed.encoding_speed --write       # into docs/tables/performance.md

As benchmarks/speed/training_speed.py: ratios within a round, on the same texts, in one process. Before anything is
timed, the vectors in float32 must agree to 1e-4.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.arguments import whole
from benchmarks.page import publish, stamp, table
from benchmarks.rounds import Contestant, in_turn, quickest, ratio, spread
from benchmarks.speed.dense_limit import KERNELS, dense, dense_encoding
from benchmarks.speed.sentence_transformers_step import PEER, sentence_transformer
from benchmarks.speed.step import encoder_of
from benchmarks.speed.work import Setting, batches, begun, described, missing, texts_of
from cli.errors import UserError, guard
from corpora.triples import Triple
from encoders.fast.same_numbers import spare_gates
from encoders.precision import store_as_computed
from encoders.text_encoder import TextEncoder

TOLERANCE = 1e-4  # of an entry of a unit vector
SIZES = (8, 16, 32, 64, 128, 256)  # texts of a batch of SentenceTransformer.encode
PAIRS = (("eos x causal", PEER), ("eos x causal", "dense limit"), ("multilayer x bi", "eos x bi"))
HEAD = ["model, data", "this", "texts/s", "compared with", "texts/s", "this / compared"]
EXPLAINED = """Queries, positives and negatives in one list, no LoRA (ours merges it), from texts to float32 unit
vectors in numpy; sentence-transformers at the kernel and the batch size (8 to 256) that were quickest. The dense limit:
as many tokens in texts of one length through the stock model, without tokenising. mteb is not in it. Ratio: median over
rounds (10th to 90th percentile), in turn in one process."""
Encode = Callable[[Sequence[str]], np.ndarray]


def main() -> None:
    """Measure and print one table."""
    queries = {"type": whole, "default": 256, "help": "of a round; a round encodes three times as many texts"}
    flags = ("--models", "--data", "--rounds", "--max-length", "--precision", "--threads", "--quick")
    args = begun("encoding_speed", *flags, queries=queries)
    taken, rows, notes = stamp(), [], []
    for source in args.data:
        reason = missing(source)
        if reason:
            notes.append(f"* {source}: skipped, {reason}.")
            continue
        work = batches(source, 8, 2) if args.quick else batches(source, args.queries, args.rounds)
        for model in args.models[:1] if args.quick else args.models:
            setting = Setting(model, max_length=args.max_length, precision=args.precision)
            lines, note = measured(setting, f"{model}, {source}", work)
            rows += lines
            notes.append(note)
    how = f"max_length={args.max_length}, precision={args.precision}. {EXPLAINED}"
    publish("encoding_speed", "Encoding speed", [taken, how, table(HEAD, rows), "\n".join(notes)], args.write)


def measured(setting: Setting, where: str, work: list[list[Triple]]) -> tuple[list[list[str]], str]:
    """Table lines of one model and source, and a note with the texts and what was quickest."""
    largest = difference(replace(setting, precision="fp32"), texts_of(work[0]))
    multilayer = replace(setting, pooler="multilayer", attn="bi")
    peers = {f"{k}, batch_size={n}": timed(peer(setting, k, n)) for k in KERNELS for n in SIZES}
    limits = {name: make() for name, make in dense(dense_encoding, setting.config()).items()}
    best, limit = (quickest(variants, work[0], again=1) for variants in (peers, limits))
    contestants = {
        "eos x causal": timed(ours(setting)),
        PEER: peers[best],
        "dense limit": limits[limit],
        "multilayer x bi": timed(ours(multilayer)),
        "eos x bi": timed(ours(replace(multilayer, pooler="eos"))),
    }
    rates = in_turn(contestants, work, work[0])
    speed = {name: f"{spread(r).median:,.0f}" for name, r in rates.items()}
    lines = [[where, a, speed[a], b, speed[b], str(ratio(rates, a, b))] for a, b in PAIRS]
    text = described(encoder_of(setting.config())[1], work[0])
    note = f"{text}. Quickest: {PEER}: {best}; dense limit: {limit}. Float32 vectors: {largest:.0e}."
    return lines, f"* {where}: {note}"


def ours(setting: Setting) -> Encode:
    """`TextEncoder.encode`, as evaluate.py calls it."""
    encoder, tokenizer = encoder_of(setting.config())
    store_as_computed(encoder.backbone, encoder.compute)  # as encoders/loading.py does for evaluation
    spare_gates(encoder.backbone, encoder.compute)
    return TextEncoder(encoder.eval(), tokenizer, "", setting.config()["token_budget"]).encode


def peer(setting: Setting, kernel: str, size: int) -> Encode:
    """`SentenceTransformer.encode` with batches of `size`."""
    model = sentence_transformer(setting.config(), kernel, adapted=False)
    return partial(model.encode, batch_size=size, normalize_embeddings=True, show_progress_bar=False)


def timed(encode: Encode) -> Contestant:
    """Encode the texts of a batch of triples; return how many they are."""
    return lambda batch: float(len(encode(texts_of(batch))))


def difference(setting: Setting, texts: list[str]) -> float:
    """Largest difference of a vector's entry; raise `UserError` where it is more than `TOLERANCE`."""
    vectors = ours(setting)(texts)
    largest = max(float(np.abs(peer(setting, kernel, 16)(texts) - vectors).max()) for kernel in KERNELS)
    if not largest <= TOLERANCE:
        raise UserError(f"sentence-transformers' vectors differ from ours by {largest:.1e}.")
    return largest


if __name__ == "__main__":
    guard(main)
