"""Warnings of the calibration, where they apply to the data at hand: intervals, skewness, related tasks."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kurtosis

from analysis.questions.question import Answer, Material
from analysis.statistics.power import skewness
from analysis.statistics.validity import coverage_note, related_note, skew_note
from analysis.statistics.variance import intraclass

PLACE = 92

HEAVY = 1.0  # excess kurtosis; published models 2.2 at the median, the embedded study 0.0


def heavy_tailed(differences: NDArray[np.float64]) -> bool:
    """Return whether the median excess kurtosis of the rows of `differences` [P, n] is above 1; rows that vary only."""
    varies = differences.var(axis=1) > 1e-20
    return bool(varies.any() and np.median(kurtosis(differences[varies], axis=1)) > HEAVY)


def answer(material: Material) -> Answer | None:
    """Return the warnings for the last block, all tasks together, or None where there is nothing to warn of."""
    tasks, pairs = material.blocks[material.last], material.pairs_on(material.last)
    differences = material.differences(material.last)
    place = {task: k for k, task in enumerate(tasks)}
    groups = [[place[task] for task in group] for group in material.types.values()]
    notes = skew_note(skewness(differences), len(tasks)) + related_note(intraclass(differences, groups), len(tasks))
    if pairs["mean_low"].notna().any() and heavy_tailed(differences):  # no word on an interval that is not there
        notes += coverage_note("t", len(tasks))
    return Answer("validity", notes=notes) if notes else None
