"""The cost of a study: FLOPs of its recipe and of its scoring, and the time that a card takes for them."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

from benchmarks.gpu_card.figures import Need, Record, figures, flops_of, need
from benchmarks.gpu_card.lengths import batch_lengths, chunked
from benchmarks.gpu_card.model import MODELS, card_config
from evaluation.instructions import read_instructions
from evaluation.plan.text_volume import Volume, text_volumes, tokens_of
from training.cost.flops import TrainingFlops, Work

CELLS = {"m1": ("eos", "causal"), "m2": ("lastlayer", "causal"), "m3": ("multilayer", "causal")}
CELLS |= {"m4": ("lastlayer", "bi"), "m5": ("multilayer", "bi")}
PAPER, NEWER = "MTEB(eng, v1)", "MTEB(eng, v2)"
PARTS = ("training", "encoding")
BATCHES = 8  # whose lengths are averaged
HOUR = 3600.0
ASSUMED_SIGN = "≈"


@dataclass(frozen=True)
class Assumed:
    """FLOPs a second that stand in for what was not measured, and the share of them that is reached."""

    bf16: float
    fp32: float
    tf32: float
    utilisation: float


@dataclass(frozen=True)
class Hours:
    """GPU hours, and whether they rest on a measurement of this very cell."""

    hours: float
    measured: bool

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(self.hours + other.hours, self.measured and other.measured)

    def __str__(self) -> str:
        """GPU hours; what rests on assumed rates has a sign."""
        return f"{'' if self.measured else ASSUMED_SIGN}{self.hours:,.1f}"


def base_config(model: str) -> dict[str, Any]:
    """The configuration of Model 5 of the paper on a base."""
    return card_config(model, *CELLS["m5"])


def coefficients(model: str, cell: str) -> TrainingFlops:
    """The closed form of a cell."""
    return flops_of(model, *CELLS[cell])


def training_work(config: dict[str, Any], longer: float = 1.0, full: bool = False) -> Work:
    """The work of all steps of the recipe, without padding, on texts of the docstrings' lengths.

    longer: how many times as long texts are, before they are cut at max_length; full: all of max_length.
    """
    t, longest = config["trainer"], config["max_length"]
    work = Work()
    for seed in range(BATCHES):
        lengths = batch_lengths(t["global_batch_size"], longest, seed, config["objective"]["hard_negatives"])
        lengths = [longest if full else min(longest, round(longer * n)) for n in lengths]
        work = work.plus(chunked(lengths, config["token_budget"], t["chunk_size"]))
    return times(work, t["max_steps"] / BATCHES)


def scoring_work(config: dict[str, Any], texts: int, tokens: float) -> Work:
    """The work of encoding `texts` of `tokens` in all; squares at most: as if each text had 0 or max_length tokens."""
    chunks = tokens / config["token_budget"]
    return Work(round(chunks), texts, round(tokens), round(tokens * config["max_length"]))


def times(work: Work, factor: float) -> Work:
    """`factor` times `work`."""
    return Work(*(round(factor * value) for value in astuple(work)))


def needed(model: str, cell: str, part: str, work: Work, once: bool = False) -> Need:
    """FLOPs of `work` for a cell of the paper; part: training or encoding."""
    pooler, attn = CELLS[cell]
    return need({"model": model, "part": part, "small": False}, {"pooler": pooler, "attn": attn}, work, once)


def measured_rate(records: Sequence[Record], model: str, part: str, cell: str, tf32: bool = False) -> float | None:
    """FLOPs a second that were measured for a cell, in its quickest execution. tf32: with the head's products so."""
    rates = []
    for record in records:
        if (record["model"], record["part"], record["small"]) != (model, part, False):
            continue
        for name, run in record["cells"].items():
            if (run["pooler"], run["attn"], run["tf32"]) == (*CELLS[cell], tf32):
                measured = figures(record, name)
                rates += [measured.flops_a_second] if measured else []
    return max(rates, default=None)


def hours(flops: Need, measured: float | None, assumed: Assumed, tf32: bool = False) -> Hours:
    """GPU hours of FLOPs, at the measured rate or else at the assumed ones; tf32: of the head's products."""
    if measured:
        return Hours(flops.total / measured / HOUR, True)
    head = assumed.tf32 if tf32 else assumed.fp32
    return Hours(flops.seconds(assumed.bf16, head) / assumed.utilisation / HOUR, False)


@dataclass(frozen=True)
class Scored:
    """A benchmark of mteb. tokens: with the instructions of the recipe, texts cut at its length; by_type: both."""

    tasks: int
    volumes: list[Volume]
    texts: int
    tokens: float
    by_type: dict[str, tuple[int, float]]

    @classmethod
    def of(cls, name: str, characters: float) -> "Scored":
        """Count `name` by mteb's statistics."""
        import mteb

        tasks, config = mteb.get_benchmark(name).tasks, base_config(MODELS[0])
        volumes, table = text_volumes(tasks), read_instructions(config["evaluation"]["instructions"])
        sizes = {"characters_a_token": characters, "max_length": config["max_length"]}

        def counted(some: list[Volume]) -> tuple[int, float]:
            return sum(v.texts for v in some), tokens_of(some, tasks, table, **sizes)

        kinds = dict.fromkeys(v.kind for v in volumes)
        by_type = {kind: counted([v for v in volumes if v.kind == kind]) for kind in kinds}
        return cls(len(tasks), volumes, *counted(volumes), by_type)


@dataclass(frozen=True)
class Inputs:
    """Measurements and assumptions. characters: of a token; gpus: that train together."""

    records: list[Record]
    assumed: Assumed
    characters: float
    gpus: int

    @cached_property
    def sets(self) -> dict[str, Scored]:
        """The benchmarks."""
        return {name: Scored.of(name, self.characters) for name in (PAPER, NEWER)}

    def hours(
        self, model: str, cell: str, work: dict[str, Work], tf32: bool | None = None, once: bool = False
    ) -> list[Hours]:
        """GPU hours of training and of scoring. tf32: of the head's products; None: as the experiment has it."""
        tf32 = base_config(model)["tf32"] if tf32 is None else tf32
        with_head = tf32 and CELLS[cell][0] != "eos"
        rates = [measured_rate(self.records, model, part, cell, with_head) for part in PARTS]
        flops = [needed(model, cell, part, work[part], once) for part in PARTS]
        return [hours(f, rate, self.assumed, tf32) for f, rate in zip(flops, rates, strict=True)]

    def works(self, model: str, benchmark: str = PAPER, **changed: Any) -> dict[str, Work]:
        """The work of one cell."""
        config, scored = base_config(model), self.sets[benchmark]
        encoding = scoring_work(config, scored.texts, scored.tokens)
        return {"training": training_work(config, **changed), "encoding": encoding}
