"""The mean over task types: a test and an interval where tasks are drawn within types that are fixed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.statistics.arrays import Floats, Ints
from analysis.statistics.intervals import mean_and_error, student_reach
from analysis.statistics.sign_flip import RANDOM_FLIPS, SignFlips, flip_means


@dataclass(frozen=True)
class Stratified:
    """For P pairs: the weighted mean over types, the ends of its interval (nan where a type has one task), its test."""

    difference: Floats
    low: Floats
    high: Floats
    flips: SignFlips


def stratified(differences: Floats, strata: Sequence[Ints], weights: Floats, level: float = 0.95) -> Stratified:
    """Test the mean over types of each row of `differences` [P, n] (strata: the places of each type's tasks).

    The mean is sum_t w_t mean_t, `weights` [types] divided by their sum. Test: each task's difference changes its sign
    within its type (Pitman 1937, in strata), exact up to 17 tasks, else 99,999 random patterns; where types differ but
    cancel out it is shy, as flips hold no type effect. Interval: Student's with the variance sum_t w_t^2 s_t^2 / n_t of
    stratified sampling (Cochran 1977, 5.4) and Satterthwaite's degrees of freedom.
    """
    shares = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    scaled = np.zeros_like(differences)
    mean, total, square = np.zeros(len(differences)), np.zeros(len(differences)), np.zeros(len(differences))
    for places, share in zip(strata, shares, strict=True):
        scaled[:, places] = differences[:, places] * (share / len(places))
        of_type, error = mean_and_error(differences[:, places])
        mean, part = mean + share * of_type, (share * error) ** 2
        total, square = total + part, square + part**2 / max(1, len(places) - 1)
    freedom = np.divide(total**2, square, out=np.ones_like(total), where=square > 0)
    reach = student_reach(np.sqrt(total), freedom, level)
    return Stratified(mean, mean - reach, mean + reach, flip_means(scaled, RANDOM_FLIPS))
