"""The score of every layer on every task: mteb's own, by the readings of `evaluate.py`, one forward pass a text."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.candidates.readings import ReadingCandidate
from representation.encoders_studied import Decoder, Subject
from representation.layers.vectors import layer_readings
from representation.progress import each

if TYPE_CHECKING:
    import pandas as pd

    from evaluation.tasks.chosen import TaskSet

FOLDER = "layer_scores"  # in the cache: among a study's scores, layers would be taken for designs of it


def layer_scores(found: list[Decoder], tasks: "TaskSet", settings: dict[str, Any]) -> "pd.DataFrame":
    """Return one row a (decoder, seed, pooling, layer, task) with its type and score.

    What was scored before is not scored again. settings: cache_dir, embeddings, progress of the command.
    """
    import pandas as pd

    from cli.quiet import quiet
    from evaluation.instructions import read_instructions
    from evaluation.plan.plan import make_plan
    from evaluation.scoring import Options, score

    readings = {own.label: [r for subject in own.seeds for r in _of(subject, settings)] for own in found}
    every = [r for own in readings.values() for r in own]
    with quiet():
        plan = make_plan(every, tasks, settings)
    print(f"Layers to score: {plan.text}", file=sys.stderr, flush=True)
    rows: list[tuple[Any, ...]] = []
    for reading in each(every, "scored", settings, lambda r: f"{r.reading} of {r.of.title}"):
        mode = reading.manifest["config"]["evaluation"]["instructions"]
        outcome = score(reading, tasks.tasks, Options(read_instructions(mode), cache_dir=plan.place.cache_dir))
        layer, _, pooling = reading.reading.removeprefix("layer:").partition("/")
        label = next(name for name, own in readings.items() if reading in own)
        rows += [
            (label, reading.manifest["seed"], pooling, int(layer), kind, task, value)
            for task, (kind, value) in outcome.scores.items()
        ]
    return pd.DataFrame(rows, columns=["decoder", "seed", "pooling", "layer", "type", "task", "score"])


def _of(subject: Subject, settings: dict[str, Any]) -> list[ReadingCandidate]:
    place = Path(settings["cache_dir"]) / FOLDER
    return [replace(reading, results=place) for reading in layer_readings(subject)]
