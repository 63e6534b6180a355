"""Real tokens a second of a training step: ours, sentence-transformers', the reference trainer's, and the limits.

    python -m benchmarks.speed.training_speed --quick       # a smoke test
    python -m benchmarks.speed.training_speed --write       # the plan below, into docs/tables/performance.md
    ... --models tiny --data docstrings --batches 64 --heats eos multilayer --precision fp32 --dropout 0 --rounds 9

Each figure is a ratio within a round, both on the same batch in the same process, and its spread over rounds. Before a
heat is timed, the loss of the first batch in float32 without dropout must agree between trainers to 1e-3.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.arguments import share, whole
from benchmarks.page import publish, stamp, table
from benchmarks.rounds import in_turn, quickest, ratio, spread
from benchmarks.speed.dense_limit import KERNELS, DenseStep, dense, flops_a_token, matrix_products
from benchmarks.speed.reference_step import ReferenceStep
from benchmarks.speed.sentence_transformers_step import PEER, PeerStep
from benchmarks.speed.step import OurStep, Step, start_alike
from benchmarks.speed.work import SOURCES, Setting, batches, begun, described, missing
from cli.compose import options
from cli.errors import UserError, guard
from corpora.triples import Triple

TOLERANCE = 1e-3
SLICE = 32  # queries of the batch on which losses are compared, variants chosen and all are warmed up
MINI_BATCHES = (*(("mini_batch_size", n) for n in (16, 32, 64)), ("mini_batch_num_tokens", 2048))
OURS_IN_CHUNKS = "GradCache, ours"
Variants = Mapping[str, Callable[[], Step]]  # several settings of one contestant; the quickest is measured
CELLS: dict[str, dict] = {
    "eos": {"pooler": "eos", "attn": "causal"},
    "multilayer": {"pooler": "multilayer", "attn": "bi"},
    "reference": {"pooler": "multilayer", "attn": "bi", "head": "reference_code"},
    "gradcache": {"pooler": "eos", "attn": "causal", "gradcache": True},
    "mixse": {"pooler": "eos", "attn": "causal"},
}
HEATS = tuple(CELLS)
EXPERTS = 4
MATRICES = "matrix products"
HEAD = ["model, data, batch", "this", "tokens/s", "compared with", "tokens/s", "this / compared", "of matrix rate"]
EXPLAINED = """A step tokenises, embeds, computes InfoNCE with one hard negative per query, goes backward, clips and
updates, in one plain loop for all trainers. sentence-transformers brings its model, LoRA (`add_adapter`), collator,
padding, `collect_features` and loss; it and the dense limit run with the attention kernel and chunking that were
quickest for them. The dense limit is the stock model with the same LoRA on texts of one length, as many tokens.
Ratio: median over rounds (10th to 90th percentile), in turn in one process, on the same texts. Of matrix rate: FLOPs
that the first needs for the real tokens, over what large square products in the same number format reach in the same
round; the first at its speed, then at the speed of what it is compared with."""


@dataclass(frozen=True)
class Heat:
    """subject and others: contestants by name. alike: those that compute the subject's loss."""

    subject: str
    setting: Setting
    contestants: dict[str, Variants]
    alike: tuple[str, ...]


def heat(kind: str, base: Setting) -> Heat:
    """The heat `kind`, one of `HEATS`, with model, lengths, precision and dropout of `base`."""
    setting = replace(base, **CELLS[kind])
    subject, config = setting.cell, setting.config()
    peers: Variants = {k: partial(PeerStep, config, k) for k in KERNELS}
    others: dict[str, Variants]
    if kind == "eos":
        others = {PEER: peers, "dense limit": dense(DenseStep, config)}
        others[OURS_IN_CHUNKS] = ours(replace(setting, gradcache=True))
    elif kind == "multilayer":
        others = {PEER: peers, "dense limit, eos": dense(DenseStep, config)}
        others["eos x bi, ours"] = ours(replace(setting, pooler="eos"))
    elif kind == "reference":
        others = {"reference trainer": {k: partial(ReferenceStep, config, k) for k in KERNELS}}
    elif kind == "mixse":
        others = {
            f"{EXPERTS} experts, top-1, trains={trains}": {"": partial(OurStep, of_experts(config, trains))}
            for trains in ("router", "experts")
        }
    else:
        subject += ", GradCache"
        mini = {f"{k}, {name}={n}": (k, {name: n}) for k in KERNELS for name, n in MINI_BATCHES}
        others = {f"{PEER}, Cached": {label: partial(PeerStep, config, *how) for label, how in mini.items()}}
    alike = {"eos": (PEER, OURS_IN_CHUNKS), "multilayer": (PEER,), "mixse": ()}.get(kind, tuple(others))
    return Heat(subject, setting, {subject: ours(setting), **others}, alike)


def of_experts(config: dict, trains: str) -> dict:
    """`config` with `EXPERTS` experts in the place of one LoRA, of which a token meets one of the same rank."""
    return {**config, "adapter": {**options("adapter")["mixse"], "experts": EXPERTS, "trains": trains}}


def ours(setting: Setting) -> Variants:
    """Return one variant, the configured one."""
    return {"": partial(OurStep, setting.config())}


@dataclass(frozen=True)
class Row:
    """A line of the plan."""

    model: str
    batch: int
    data: tuple[str, ...]
    heats: tuple[str, ...]
    rounds: int


PLAN = (
    Row("tiny", 64, SOURCES, ("eos", "multilayer", "reference", "mixse"), 7),
    Row("tiny", 256, SOURCES, ("eos", "multilayer"), 5),
    Row("tiny", 2048, SOURCES[:1], ("gradcache",), 3),
    Row("random", 32, SOURCES, ("eos",), 3),  # 64 padded with all its graphs is more than 16 GiB
    Row("random", 256, SOURCES[:1], ("gradcache",), 3),  # without GradCache its graphs would need 40 GB
)
QUICK = (Row("tiny", 6, SOURCES[:1], HEATS, 2), Row("tiny", 6, SOURCES[1:], HEATS[:1], 2))


def main() -> None:
    """Run the chosen part of the plan and print a table for each line of it."""
    args = begun(
        *("training_speed", "--models", "--data", "--max-length", "--precision", "--threads", "--quick"),
        heats={"nargs": "+", "choices": HEATS, "default": HEATS},
        batches={"nargs": "+", "type": whole, "help": "those of the plan with so many queries"},
        rounds={"type": whole, "help": "of each heat; default: as the plan says"},
        dropout={"type": share, "default": 0.1, "help": "of LoRA"},
    )
    base = Setting(max_length=args.max_length, precision=args.precision, dropout=args.dropout)
    for row in QUICK if args.quick else PLAN:
        if row.model in args.models and (not args.batches or row.batch in args.batches):
            measure_row(row, replace(base, model=row.model), args)


def measure_row(row: Row, setting: Setting, args: Namespace) -> None:
    """Measure one line of the plan, into a section of its own: what is measured later leaves it as it is."""
    taken, lines, notes = stamp(), list[list[str]](), list[str]()
    how = f"max_length={args.max_length}, precision={args.precision}, LoRA dropout {args.dropout}. {EXPLAINED}"
    for source, kind in ((s, k) for s in row.data for k in row.heats if s in args.data and k in args.heats):
        reason, start = missing(source), time.perf_counter()
        if reason:
            notes.append(f"* {source}: skipped, {reason}.")
        else:
            work = batches(source, row.batch, args.rounds or row.rounds)
            losses = check_losses(heat(kind, replace(setting, precision="fp32")), work[0][:SLICE])
            more, note = measured(heat(kind, setting), f"{setting.model}, {source}, {row.batch}", work)
            lines += more
            notes.append(f"{note} {losses}")
            title = f"Training speed: {row.model}, batches of {row.batch}"
            parts = [taken, how, table(HEAD, lines), "\n".join(notes)]
            # after each heat: a long run that is cut loses one
            publish(f"training_speed_{row.model}_{row.batch}", title, parts, args.write)
        done = f"skipped, {reason}" if reason else f"{time.perf_counter() - start:.0f} s"
        print(f"{row.model}, {source}, {row.batch}, {kind}: {done}", flush=True)


def measured(this: Heat, where: str, work: list[list[Triple]]) -> tuple[list[list[str]], str]:
    """Table lines of a heat, and a note with the texts and the variants that were quickest."""
    sample, steps, kept = work[0][:SLICE], {}, []
    for name, variants in this.contestants.items():
        best = quickest({v: make() for v, make in variants.items()}, sample, again=1) if len(variants) > 1 else ""
        steps[name] = variants[best]()
        kept += [f"{name}: {best}"] if best else []
    subject = steps[this.subject]
    assert isinstance(subject, OurStep)
    start_alike(subject, *(steps[name] for name in this.alike))
    rates = in_turn({**steps, MATRICES: matrix_products(this.setting.precision)}, work, sample)
    need = flops_a_token(this.setting.config(), [n for batch in work for n in subject.lengths(batch)])
    shares = {name: f"{100 * need * ratio(rates, name, MATRICES).median:.0f} %" for name in steps}
    speeds = {name: f"{spread(rates[name]).median:,.0f}" for name in steps}
    lines = [
        [where, a, speeds[a], b, speeds[b], str(ratio(rates, a, b)), f"{shares[a]}, {shares[b]}"]
        for a, b in ((this.subject, name) for name in steps if name != this.subject)
    ]
    return lines, f"* {where}, {this.subject}: {described(subject.tokenizer, work[0])}. Quickest: {'; '.join(kept)}."


def check_losses(this: Heat, sample: Sequence[Triple]) -> str:
    """Compare losses without dropout, of all variants; raise `UserError` where they differ by more than `TOLERANCE`.

    this: the heat in float32. In bf16 the losses of two exact trainers differ by rounding.
    """
    subject = this.contestants[this.subject][""]()
    start_alike(subject)
    loss, _ = subject.without_dropout(sample)
    largest = 0.0
    for name in this.alike:
        for variant, make in this.contestants[name].items():
            step = make()
            start_alike(subject, step)
            other, _ = step.without_dropout(sample)
            largest = max(largest, abs(other - loss))
            if not abs(other - loss) <= TOLERANCE:
                raise UserError(f"{name} ({variant}) has the loss {other:.5f} where {this.subject} has {loss:.5f}.")
    return f"Loss of the first {len(sample)} queries, float32: {loss:.4f}, the others' within {largest:.0e}."


if __name__ == "__main__":
    guard(main)
