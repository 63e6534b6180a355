"""The cost of further readings of one forward pass, and the saving of the cache in an evaluation of the docs benchmark.

    python -m benchmarks.speed.readings_speed --quick       # a smoke test
    python -m benchmarks.speed.readings_speed --write       # into docs/tables/performance.md

As benchmarks/speed/encoding_speed.py: ratios within a round, on the same texts, in one process, from texts to float32
unit vectors in numpy. Before anything is timed, each reading must be bit-equal to its pooler run alone.
"""

import time
from argparse import Namespace
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.arguments import whole
from benchmarks.page import publish, stamp, table
from benchmarks.rounds import Contestant, in_turn, ratio, spread
from benchmarks.speed.work import Setting, batches, begun, texts_of
from cli.compose import composed, plain
from cli.errors import UserError, guard
from corpora.triples import Triple
from encoders.loading import LoadedReadings, load_readings, untrained
from evaluation.candidates.candidates import Candidate, candidates
from evaluation.candidates.readings import PLAIN, ReadingCandidate, read_by
from evaluation.scoring import Options, score
from evaluation.tasks.chosen import task_set

HEAD = ["model, readings", "K", "texts/s", "time / one reading (mean)", "time / K encoders alone"]
DOCS_HEAD = ["docs benchmark", "seconds", "encoding s", "cache s", "mteb s", "time / cold, one reading"]
EXPLAINED = """Queries, positives and negatives of docstrings in one list. Ratios of seconds, taken in turn in one
process: median over rounds (10th to 90th percentile). The docs benchmark: all its tasks by mteb, with an empty cache of
embeddings (cold) and with all of them there (warm); all readings: mteb runs once for each of them."""
NAMES = ["layer:*/mean", *PLAIN]


def main() -> None:
    """Measure and print two tables."""
    args = begun(
        *("readings_speed", "--models", "--rounds", "--max-length", "--precision", "--threads", "--quick"),
        queries={"type": whole, "default": 128, "help": "of a round, with a positive and a negative each"},
        benchmark={"default": "docs", "choices": ("docs", "docs_dev", "docs_smoke")},
        docs_rounds={"type": whole, "default": 3},
    )
    taken = stamp()
    work = batches("docstrings", 8, 2) if args.quick else batches("docstrings", args.queries, args.rounds)
    rows = [row for model in args.models[: 1 if args.quick else None] for row in encoding(model, args, work)]
    docs = evaluation("docs_smoke", 1) if args.quick else evaluation(args.benchmark, args.docs_rounds)
    how = f"attn=bi, max_length={args.max_length}, precision={args.precision}. {EXPLAINED}"
    parts = [taken, how, table(HEAD, rows), table(DOCS_HEAD, docs)]
    publish("readings_speed", "Readings and the cache", parts, args.write)


def encoding(model: str, args: Namespace, work: list[list[Triple]]) -> list[list[str]]:
    """Table lines of one model: K readings against one, and against K encoders run one after the other."""
    cfg = Setting(model, "mean", "bi", args.max_length, args.precision).config()
    readings = read_by([Candidate({**ABOUT, "config": cfg}, Path())], NAMES)
    poolers = {r.reading: r.manifest["config"]["pooler"] for r in readings if isinstance(r, ReadingCandidate)}
    alone = {name: untrained({**cfg, "pooler": pooler}) for name, pooler in poolers.items()}
    sets = {"one (mean)": ["mean"], "three plain": list(PLAIN), "all": list(poolers)}
    loaded = {n: load_readings(cfg, None, {k: poolers[k] for k in names}) for n, names in sets.items()}
    check(loaded["all"], alone, texts_of(work[0]))
    contestants: dict[str, Contestant] = {name: in_line([together]) for name, together in loaded.items()}
    contestants |= {f"alone {n}": in_line([alone[k] for k in names]) for n, names in sets.items()}
    rates = in_turn(contestants, work, work[0])
    speeds = {name: f"{spread(rates[name]).median:,.0f}" for name in sets}
    against = {n: [str(ratio(rates, "one (mean)", n)), str(ratio(rates, f"alone {n}", n))] for n in sets}
    return [[f"{model}, {n}", str(len(names)), speeds[n], *against[n]] for n, names in sets.items()]


ABOUT = {"study": "benchmark", "pooler": "mean", "attn": "bi", "seed": 0, "status": "untrained"}


def in_line(encoders: Sequence) -> Contestant:
    """Each encoder by a forward pass of its own, one of all readings or of one; returns the number of texts."""

    def run(batch: Sequence[Triple]) -> float:
        texts = list(dict.fromkeys(texts_of(batch)))
        for encoder in encoders:
            for _ in encoder.parts(texts):
                pass
        return float(len(texts))

    return run


def check(loaded: LoadedReadings, alone: dict, texts: list[str]) -> None:
    """Raise `UserError` where a reading's vectors are not those of its pooler alone."""
    distinct = list(dict.fromkeys(texts))
    for name, encoder in alone.items():
        pairs = zip(loaded.parts(distinct), encoder.parts(distinct), strict=True)
        if not all(np.array_equal(readings[name], alone_only) for (_, readings), (_, alone_only) in pairs):
            raise UserError(f"Reading {name} differs from its pooler run alone.")


def evaluation(benchmark: str, rounds: int) -> list[list[str]]:
    """Table lines: one reading cold, warm; nine readings cold, warm; each round in fresh folders."""
    seconds: dict[str, list[tuple[float, ...]]] = {}
    for _, (label, names) in product(range(rounds), {"one reading": ["mean"], "all readings": NAMES}.items()):
        with TemporaryDirectory() as folder:
            for state in ("cold", "warm"):
                seconds.setdefault(f"{label}, {state}", []).append(scored(benchmark, names, Path(folder), state))
    base = [first[0] for first in seconds["one reading, cold"]]
    lines = []
    for label, taken in seconds.items():
        medians = [f"{spread(column).median:.1f}" for column in zip(*taken, strict=True)]
        lines.append([label, *medians, str(spread([t[0] / b for t, b in zip(taken, base, strict=True)]))])
    return lines


def scored(benchmark: str, names: list[str], folder: Path, state: str) -> tuple[float, ...]:
    """Seconds in all with loading, in the encoder, in the cache, and in mteb."""
    words = [f"benchmark={benchmark}", "attn=bi", f"results='{folder / state}'", "accelerator=cpu"]
    cfg = plain(composed("evaluate", words))
    tasks = task_set(cfg).tasks
    start = time.perf_counter()
    outcomes = [score(candidate, tasks, Options(cache_dir=folder)) for candidate in read_by(candidates(cfg), names)]
    in_all = time.perf_counter() - start
    encoding, caching = sum(o.encoding for o in outcomes), sum(o.caching for o in outcomes)
    return in_all, encoding, caching, sum(o.seconds for o in outcomes) - encoding - caching


if __name__ == "__main__":
    guard(main)
