"""The base of the page of costs: measurements or assumptions, and the work of the recipe and of the benchmarks."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.cost.study import (
    CELLS,
    Assumed,
    Hours,
    base_config,
    hours,
    measured_rate,
    needed,
    scoring_work,
    training_work,
)
from benchmarks.gpu_card.figures import Record
from benchmarks.gpu_card.model import MODELS
from evaluation.instructions import read_instructions
from evaluation.plan.text_volume import Volume, text_volumes, tokens_of
from training.cost.flops import Work

PAPER, NEWER = "MTEB(eng, v1)", "MTEB(eng, v2)"
PARTS = ("training", "encoding")


@dataclass(frozen=True)
class Inputs:
    """Measurements and assumptions. characters: of a token; gpus: that train together."""

    records: list[Record]
    assumed: Assumed
    characters: float
    gpus: int

    @cached_property
    def sets(self) -> dict[str, "Scored"]:
        """The benchmarks."""
        return {name: Scored.of(name, self.characters) for name in (PAPER, NEWER)}

    def hours(
        self, model: str, cell: str, work: dict[str, Work], tf32: bool = False, once: bool = False
    ) -> list[Hours]:
        """GPU hours of training and of scoring."""
        found = []
        for part in PARTS:
            trained_head = CELLS[cell][0] != "eos"
            rate = measured_rate(self.records, model, part, cell, tf32 and trained_head)
            found.append(hours(needed(model, cell, part, work[part], once), rate, self.assumed, tf32))
        return found

    def works(self, model: str, benchmark: str = PAPER, **changed: Any) -> dict[str, Work]:
        """The work of one cell."""
        config = base_config(model)
        scored = self.sets[benchmark]
        encoding = scoring_work(config, scored.texts, scored.tokens)
        return {"training": training_work(config, **changed), "encoding": encoding}


@dataclass(frozen=True)
class Scored:
    """A benchmark of mteb. tokens: with the instructions of the recipe, texts cut at its length."""

    tasks: int
    volumes: list[Volume]
    texts: int
    tokens: float
    by_type: dict[str, tuple[int, float]]

    @classmethod
    def of(cls, name: str, characters: float) -> "Scored":
        """Count `name` by mteb's statistics."""
        import mteb

        tasks = mteb.get_benchmark(name).tasks
        volumes = text_volumes(tasks)
        config = base_config(MODELS[0])
        sizes = {"characters_a_token": characters, "max_length": config["max_length"]}
        table = read_instructions(config["evaluation"]["instructions"])

        def tokens(some: list[Volume]) -> float:
            return tokens_of(some, tasks, table, **sizes)

        kinds = {v.kind: [w for w in volumes if w.kind == v.kind] for v in volumes}
        by_type = {kind: (sum(v.texts for v in some), tokens(some)) for kind, some in kinds.items()}
        return cls(len(tasks), volumes, sum(v.texts for v in volumes), tokens(volumes), by_type)
