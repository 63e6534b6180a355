"""The shape of each encoder's cloud of vectors, and its relation to the score, with an interval."""

from collections.abc import Mapping
from functools import partial
from math import fsum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.questions.question import Answer
from analysis.scores.mteb_results import NOT_SCORES
from analysis.scores.mteb_task import read_task
from analysis.scores.task_types import read_types
from cli.errors import UserError
from encoders.vector_geometry import (
    alignment,
    anisotropy,
    centred_effective_rank,
    effective_rank,
    uniformity,
)
from evaluation.results import model_folder, revision
from representation.encoders_studied import Studied
from representation.geometry.relation import geometry_drawings, geometry_grids, relation, relation_grid, relation_notes
from representation.question import each
from representation.texts import Text, Texts, gathered

PLACE = 20
TITLE = "Geometry of the vectors"
OF_A_CLOUD = {
    "anisotropy": anisotropy,
    "uniformity": uniformity,
    "effective_rank": effective_rank,
    "centred_effective_rank": centred_effective_rank,
}
Vectors = NDArray[np.float32]
Scores = dict[str, tuple[str, float]]  # task -> (type, main score)


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer:
    """Measure every encoder's own vectors, task type by task type; one forward pass per text."""
    table, tasks = _measured(encoders, texts, settings)
    grids, notes = geometry_grids(table, texts), [_note(texts), *_score_notes(table, tasks)]
    frames, correlations = {"geometry": table}, relation(table)
    if correlations.empty:
        return Answer("geometry", TITLE, grids, list, frames, notes)
    grids.append(relation_grid(correlations, texts.over))
    frames["geometry_relation"] = correlations
    notes += relation_notes(correlations)
    draw = partial(geometry_drawings, table, correlations, texts.over)
    return Answer("geometry", TITLE, grids, draw, frames, notes)


def _measured(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, int]]:
    """One row per (encoder, type) with its measures and score (NaN where there is none); scored tasks per type."""
    rows: list[dict[str, Any]] = []
    scores: dict[str, Scores] = {}
    for studied in each(encoders, "geometry", settings):
        measures_of, scores[studied.label] = cloud_measures(own_vectors(studied, texts), texts), scores_of(studied)
        about = {"encoder": studied.label, "design": studied.design, "seed": studied.seed, "trained": studied.trained}
        rows += [about | {"type": kind} | measures for kind, measures in measures_of.items()]
    means, tasks = type_scores(scores)
    for row in rows:
        row["score"] = means.get(row["encoder"], {}).get(row["type"], float("nan"))
    return pd.DataFrame(rows), tasks


def own_vectors(studied: Studied, texts: Texts) -> dict[Text, Vectors]:
    """Return text -> its vector [E] as evaluation gets it, with the instruction that evaluation gives; pairs' too."""
    encoder, (queries, documents) = studied.encoder(), zip(*texts.pairs, strict=True) if texts.pairs else ((), ())
    wanted = list(dict.fromkeys([*texts.every, *queries, *documents]))
    passes = texts.passes(studied, wanted, lambda batch: {"": encoder.encoder(batch).cpu().numpy()})
    return dict(zip(wanted, gathered(passes, len(wanted))[""], strict=True))


def cloud_measures(vectors: Mapping[Text, Vectors], texts: Texts) -> dict[str, dict[str, float]]:
    """Return task type -> measure -> number; alignment is of the pairs, the same for all types."""
    near = float("nan")
    if texts.pairs:
        near = alignment(*(np.stack([vectors[text] for text in side]) for side in zip(*texts.pairs, strict=True)))
    clouds = {kind: np.stack([vectors[text] for text in sample]) for kind, sample in texts.of_type.items()}
    return {
        kind: {name: measure(cloud) for name, measure in OF_A_CLOUD.items()} | {"alignment": near}
        for kind, cloud in clouds.items()
    }


def scores_of(studied: Studied) -> Scores:
    """Return the scores of these very weights and settings; {} where there are none.

    They are looked for next to the run's study (or in `results=`), in the folder that evaluation would write to.
    """
    candidate: Any = studied.candidate
    folder = model_folder(candidate) / revision(candidate, studied.encoder().fingerprint, studied.instructions)
    types_file = candidate.results / "tasks.json"
    types = read_types(types_file) if types_file.is_file() else {}
    files = [path for path in sorted(folder.glob("*.json")) if path.name not in NOT_SCORES]
    rows = [read_task(path, candidate.name, str(studied.seed)) for path in files]
    problem = next((row.problem for row in rows if row.problem), "")
    if problem:
        raise UserError(problem)
    return {row.task: (types[row.task], row.score) for row in rows if row.task in types}


def type_scores(scores: Mapping[str, Scores]) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Return (encoder -> task type -> mean score, task type -> how many tasks), over the tasks that all encoders have.

    A mean over other tasks would be another scale. Encoders without any score are left out.
    """
    scored = {label: tasks for label, tasks in scores.items() if tasks}
    shared = set.intersection(*(set(tasks) for tasks in scored.values())) if scored else set()
    kinds: dict[str, list[str]] = {}
    for task in sorted(shared):
        kinds.setdefault(next(iter(scored.values()))[task][0], []).append(task)
    means = {
        label: {kind: fsum(of_task[task][1] for task in tasks) / len(tasks) for kind, tasks in kinds.items()}
        for label, of_task in scored.items()
        if shared
    }
    return means, {kind: len(tasks) for kind, tasks in kinds.items()}


def _note(texts: Texts) -> str:
    return (
        "Vectors are those that are scored, at unit length. Anisotropy: mean cosine of two different texts (Ethayarajh "
        "2019). Alignment: mean squared distance of a query and a document relevant to it; uniformity: log of the mean "
        "of exp(-2 d^2) over pairs of texts (Wang and Isola 2020); for both less is better in their sense. Effective "
        "rank: exp of the entropy of the normalised singular values (Roy and Vetterli 2007), also after the mean "
        f"vector is taken away; neither the number of texts ({min(map(len, texts.of_type.values()))} of a type) nor "
        "that of dimensions can be exceeded."
    )


def _score_notes(table: pd.DataFrame, tasks: dict[str, int]) -> list[str]:
    lacking = table["score"].isna().groupby(table["encoder"], sort=False).all()
    without = [str(label) for label in lacking.index[lacking]]
    remedy = "Run evaluate.py run=... untrained=also with one benchmark for all."
    if len(without) == len(lacking):
        return [
            f"No tasks were found that all scored encoders have, of these very weights and settings, so there is no "
            f"relation to the score. {remedy}"
        ]
    counts = ", ".join(f"{count} {kind}" for kind, count in tasks.items())
    notes = [f"Scores are means over the tasks that all scored encoders have: {counts}."]
    if without:
        notes.append(f"Not scored, so left out of the relation: {', '.join(without)}. {remedy}")
    return notes
