"""The shape of each encoder's cloud of vectors: anisotropy, alignment, uniformity, effective rank."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.render import Section, Table
from poolers.shared.vector_geometry import Floats, alignment, uniformity, unit
from representation.encoders_studied import Studied
from representation.sections import each
from representation.texts import Text, Texts, gathered

PLACE = 20


def anisotropy(vectors: Floats) -> float:
    """Mean cosine of two different texts of [N, D], over all pairs (Ethayarajh 2019); 0 spread evenly to 1."""
    x = unit(vectors)
    total = x.sum(axis=0)
    return float((total @ total - (x * x).sum()) / (len(x) * (len(x) - 1)))


def effective_rank(vectors: Floats) -> float:
    """exp of the entropy of the singular values of [N, D], divided by their sum; 1 to min(N, D).

    Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality", definition 1.
    """
    return _entropy_rank(unit(vectors))


def centred_effective_rank(vectors: Floats) -> float:
    """`effective_rank` after the mean vector is taken away: what varies between texts, without their common part."""
    x = unit(vectors)
    return _entropy_rank(x - x.mean(axis=0))


def _entropy_rank(matrix: NDArray[np.float64]) -> float:
    values = np.linalg.svd(matrix, compute_uv=False)
    if values.sum() == 0:
        return float("nan")
    shares = values / values.sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


OF_A_CLOUD = {
    "anisotropy": anisotropy,
    "uniformity": uniformity,
    "effective_rank": effective_rank,
    "centred_effective_rank": centred_effective_rank,
}
MEASURES = [*OF_A_CLOUD, "alignment"]
COLUMNS = [
    "Anisotropy: mean cosine of two different texts (Ethayarajh 2019).",
    "Uniformity: log of the mean of exp(-2 d^2) over pairs of texts; alignment: mean squared distance of a query and a "
    "document relevant to it (Wang and Isola 2020): less is better of both.",
    "Effective rank: exp of the entropy of the normalised singular values (Roy and Vetterli 2007), also after the mean "
    "vector is taken away.",
]
Vectors = NDArray[np.float32]


def section(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Section:
    """Measure every encoder's own vectors, task type by task type; one forward pass per text."""
    rows: list[dict[str, Any]] = []
    for studied in each(encoders, "geometry", settings):
        about = {"encoder": studied.label, "design": studied.design, "seed": studied.seed, "trained": studied.trained}
        measures_of = cloud_measures(own_vectors(studied, texts), texts)
        rows += [about | {"type": kind} | measures for kind, measures in measures_of.items()]
    frame = pd.DataFrame(rows)
    whole = frame.groupby("encoder", sort=False)[MEASURES].mean().reset_index()
    by_type = frame[["encoder", "type", *OF_A_CLOUD]]
    over = f"Over {texts.over}, alignment over {len(texts.pairs)} pairs."
    tables = [
        Table("geometry-encoders", "Geometry of each encoder", over, whole),
        Table("geometry-types", "Geometry by task type", over, by_type, left=2),
    ]
    return Section("geometry", "Geometry of the vectors", tables, frames={"geometry": frame}, notes=COLUMNS)


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
