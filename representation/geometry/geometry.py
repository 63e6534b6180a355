"""The shape of each encoder's cloud of vectors, and whether it goes with the score: with an interval, not a story."""

from typing import TYPE_CHECKING, Any

from representation.answer import Answer
from representation.geometry.figure import geometry_figure
from representation.geometry.own_vectors import OwnVectors, own_vectors
from representation.geometry.relation import relation, relation_grid, relation_notes
from representation.geometry.scores_of import Scores, scores_of, type_scores
from representation.geometry.tables import geometry_grids
from representation.geometry.vector_geometry import (
    alignment,
    anisotropy,
    centred_effective_rank,
    effective_rank,
    uniformity,
)
from representation.progress import each
from representation.subject import Subject
from representation.texts import Texts

if TYPE_CHECKING:
    import pandas as pd

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
    return Answer("geometry", "Geometry of the vectors", grids, drawings, frames, notes)


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
