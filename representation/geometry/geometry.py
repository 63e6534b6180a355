"""The shape of each encoder's cloud of vectors, and whether it goes with the score: with an interval, not a story."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.questions.question import Answer
from representation.encoders_studied import Subject
from representation.geometry.figure import geometry_figure
from representation.geometry.relation import geometry_grids, relation, relation_grid, relation_notes
from representation.geometry.vector_geometry import (
    alignment,
    anisotropy,
    centred_effective_rank,
    effective_rank,
    uniformity,
)
from representation.progress import each
from representation.texts import Text, Texts

if TYPE_CHECKING:
    import pandas as pd


Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class OwnVectors:
    """`of_type`: task type -> [n, E]; `queries`, `documents`: [p, E] each, row by row a relevant pair."""

    of_type: dict[str, Vectors]
    queries: Vectors
    documents: Vectors


def own_vectors(subject: Subject, texts: Texts) -> OwnVectors:
    """Return the vectors as evaluation gets them, with the instructions that evaluation gives."""
    encoder = subject.encoder()
    wanted: list[Text] = [*texts.every, *(query for query, _ in texts.pairs), *(body for _, body in texts.pairs)]
    place: dict[Text, int] = {}
    for text in wanted:
        place.setdefault(text, len(place))
    found = np.empty((len(place), encoder.embedding_dim), dtype=np.float32)
    for places, part in texts.passes(subject, list(place), lambda batch: encoder.encoder(batch).cpu().numpy()):
        found[places] = part

    def rows(some: list[Text]) -> Vectors:
        return found[[place[text] for text in some]]

    return OwnVectors(
        {kind: rows(sample) for kind, sample in texts.of_type.items()},
        rows([query for query, _ in texts.pairs]),
        rows([body for _, body in texts.pairs]),
    )


Scores = dict[str, tuple[str, float]]  # task -> (type, main score)


def scores_of(subject: Subject) -> Scores:
    """Return the scores of these very weights and settings; {} where there are none.

    They are looked for beside the run's study (or in `results=`), in the folder that evaluation would write to.
    """
    from analysis.scores.mteb_results import NOT_SCORES
    from analysis.scores.mteb_task import read_task
    from analysis.scores.task_types import read_types
    from evaluation.results import model_folder, revision

    candidate: Any = subject.candidate
    folder = model_folder(candidate) / revision(candidate, subject.encoder(), subject.instructions)
    types_file = candidate.results / "tasks.json"
    types = read_types(types_file) if types_file.is_file() else {}
    files = [path for path in sorted(folder.glob("*.json")) if path.name not in NOT_SCORES]
    rows = [read_task(path, candidate.name, str(subject.seed)) for path in files]
    return {row.task: (types[row.task], row.score) for row in rows if row.task in types}


def type_scores(found: Mapping[str, Scores]) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Return (encoder -> task type -> mean score, task type -> how many tasks), over the tasks that all encoders have.

    A mean over other tasks would be another scale. Encoders without any score are left out.
    """
    scored = {label: own for label, own in found.items() if own}
    shared = set.intersection(*(set(own) for own in scored.values())) if scored else set()
    kinds: dict[str, list[str]] = {}
    for task in sorted(shared):
        kinds.setdefault(next(iter(scored.values()))[task][0], []).append(task)
    means = {
        label: {kind: fsum(own[task][1] for task in tasks) / len(tasks) for kind, tasks in kinds.items()}
        for label, own in scored.items()
        if shared
    }
    return means, {kind: len(tasks) for kind, tasks in kinds.items()}


OF_A_CLOUD = {
    "anisotropy": anisotropy,
    "uniformity": uniformity,
    "effective_rank": effective_rank,
    "centred_effective_rank": centred_effective_rank,
}


def answer(subjects: list[Subject], texts: Texts, settings: dict[str, Any]) -> Answer:
    """Measure every encoder's own vectors, task type by task type; one forward pass a text."""
    table, tasks = _measured(subjects, texts, settings)
    grids, drawings, notes = geometry_grids(table, texts), [], [*_notes(texts), *_score_notes(table, tasks)]
    found = relation(table)
    frames = {"geometry": table}
    if len(found):
        grids.append(relation_grid(found, texts.over))
        drawings.append(geometry_figure(table, found, texts.over))
        frames["geometry_relation"] = found
        notes += relation_notes(found)
    return Answer("geometry", "Geometry of the vectors", grids, lambda: drawings, frames, notes)


def _measured(subjects: list[Subject], texts: Texts, settings: dict[str, Any]) -> "tuple[pd.DataFrame, dict[str, int]]":
    """One row an (encoder, type) with its measures and score (NaN where there is none); tasks scored of each type."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    scores: dict[str, Scores] = {}
    for subject in each(subjects, "geometry", settings):
        vectors, scores[subject.label] = own_vectors(subject, texts), scores_of(subject)
        who = {"encoder": subject.label, "design": subject.design, "seed": subject.seed, "trained": subject.trained}
        rows += [who | {"type": kind} | measures for kind, measures in cloud_measures(vectors).items()]
    means, tasks = type_scores(scores)
    for row in rows:
        row["score"] = means.get(row["encoder"], {}).get(row["type"], float("nan"))
    return pd.DataFrame(rows), tasks


def cloud_measures(vectors: OwnVectors) -> dict[str, dict[str, float]]:
    """Return task type -> measure -> number; alignment is of the pairs, the same for all types."""
    near = alignment(vectors.queries, vectors.documents) if len(vectors.queries) else float("nan")
    return {
        kind: {name: measure(own) for name, measure in OF_A_CLOUD.items()} | {"alignment": near}
        for kind, own in vectors.of_type.items()
    }


def _notes(texts: Texts) -> list[str]:
    return [
        "Vectors are those that are scored, at unit length. Anisotropy: mean cosine of two different texts (Ethayarajh "
        "2019). Alignment: mean squared distance of a query and a document relevant to it; uniformity: log of the mean "
        "of exp(-2 d^2) over pairs of texts (Wang and Isola 2020); for both less is better in their sense. Effective "
        "rank: exp of the entropy of the normalised singular values (Roy and Vetterli 2007), also after the mean "
        f"vector is taken away; neither the number of texts ({min(map(len, texts.of_type.values()))} of a type) nor "
        "that of dimensions can be exceeded.",
    ]


def _score_notes(table: "pd.DataFrame", tasks: dict[str, int]) -> list[str]:
    lacking = table.groupby("encoder", sort=False)["score"].apply(lambda own: own.isna().all())
    without = [str(label) for label in lacking.index[lacking]]
    mend = "Run evaluate.py run=... untrained=also with one benchmark for all."
    if len(without) == len(lacking):
        return [
            f"No tasks were found that all scored encoders have, of these very weights and settings, so there is no "
            f"relation to the score. {mend}"
        ]
    counts = ", ".join(f"{count} {kind}" for kind, count in tasks.items())
    notes = [f"Scores are means over the tasks that all scored encoders have: {counts}."]
    if without:
        notes.append(f"Not scored, so left out of the relation: {', '.join(without)}. {mend}")
    return notes
