"""Simulated task differences of two designs that are equally good, drawn from the spread of real ones.

A spread is the centred differences of one real pair, scaled to a standard deviation of .03 so that rounding means the
same for all. Each repetition takes a spread at random, draws n of its tasks with replacement, and adds noise of a
tenth of the standard deviation (a smoothed bootstrap: a task drawn twice is no tie).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis.statistics.arrays import Floats
from analysis.statistics.intervals import hodges_lehmann
from cli.errors import UserError

SD = 0.03
NOISE = 0.1  # of the standard deviation
NEAR = 0.03  # published models whose means are so close make a pair or a family
BLOCK = 4  # related tasks
DESIGNS = 5
RATIO = 10  # of the largest spread of a task to the smallest, where spreads are unequal
FAMILIES = 200
OWN = Path(__file__).with_name("embedded_scores.csv")  # the embedded study, seed 0, commit c14e3f8
PSEUDOMEDIAN = 0.8391735  # of the standard exponential: half the median of Gamma(2)


@dataclass(frozen=True)
class Spreads:
    """`pairs` [P, T]: centred differences, SD .03; `families` [F, T, 5]: residuals of five designs, alike."""

    source: str
    pairs: Floats
    families: Floats


World = Callable[[np.random.Generator, Spreads, int, int], Floats]  # draws [reps, n]; equally good by its own measure


def read_spreads(path: Path | None) -> Spreads:
    """Read a wide csv of published models (those with every task), or our own five designs where there is no path."""
    import pandas as pd

    if path is None:
        scores = pd.read_csv(OWN).set_index(["task", "type"]).to_numpy().T
        return Spreads("the embedded study (5 designs, 40 tasks)", _pairs(scores), _family(scores)[None])
    try:
        table = pd.read_csv(path).set_index("model")
        table = table[[name for name in table.columns if not name.startswith(("mean_", "n_"))]].dropna()
        scores = table.to_numpy() / 100
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path} is no csv with a column model and one column of scores per task ({error}).") from error
    scores = np.unique(scores, axis=0)  # a model published twice
    if len(scores) < 100:
        raise UserError(f"{path} has {len(scores)} models with every task; 100 are needed to draw families from.")
    scores = scores[np.argsort(scores.mean(axis=1))]
    rng = np.random.default_rng(0)
    families: list[Floats] = []
    while len(families) < FAMILIES:
        start = rng.integers(len(scores) - 2 * DESIGNS)
        chosen = scores[start + rng.permutation(2 * DESIGNS)[:DESIGNS]]
        if np.ptp(chosen.mean(axis=1)) < NEAR:
            families.append(_family(chosen))
    source = f"published models ({len(scores)} with all of {scores.shape[1]} tasks)"
    return Spreads(source, _pairs(scores), np.array(families))


def _pairs(scores: Floats) -> Floats:
    first, second = np.triu_indices(len(scores), k=1)
    near = np.abs(scores[second].mean(axis=1) - scores[first].mean(axis=1)) < NEAR
    d = (scores[second] - scores[first])[near]
    d = d - d.mean(axis=1, keepdims=True)
    return np.asarray(d / d.std(axis=1, ddof=1, keepdims=True) * SD)


def _family(scores: Floats) -> Floats:
    """Residuals [T, 5] after task and design, scaled so that a pair of designs differs by SD .03 on average."""
    residual = scores.T - scores.T.mean(axis=1, keepdims=True)
    residual = residual - residual.mean(axis=0)
    return np.asarray(residual / residual.std() * SD / np.sqrt(2))


def as_they_are(rng: np.random.Generator, spreads: Spreads, reps: int, n: int) -> Floats:
    """Draw [reps, n]; the population mean of each repetition is 0, its skewness that of the real pair."""
    pairs = spreads.pairs
    which = rng.integers(len(pairs), size=(reps, 1))
    drawn = pairs[which, rng.integers(pairs.shape[1], size=(reps, n))]
    return np.asarray(drawn + rng.normal(0, NOISE * SD, size=(reps, n)))


def pseudomedian_zero(rng: np.random.Generator, spreads: Spreads, reps: int, n: int) -> Floats:
    """Real spreads with a median of the means of two of 0: what the signed-rank test and Hodges-Lehmann speak of."""
    middle = hodges_lehmann(spreads.pairs).estimate
    return as_they_are(rng, replace(spreads, pairs=spreads.pairs - middle[:, None]), reps, n)


def signs_shuffled(rng: np.random.Generator, spreads: Spreads, reps: int, n: int) -> Floats:
    """A control: each spread with random signs, then its mean taken away, then drawn from as it is.

    Its skewness is that of a finite sample of a symmetric law, so what fails on `as_they_are` and not here is skewness
    of the real differences, not the drawing.
    """
    pairs = spreads.pairs * np.random.default_rng(0).choice([-1.0, 1.0], size=spreads.pairs.shape)
    pairs = pairs - pairs.mean(axis=1, keepdims=True)
    return as_they_are(rng, replace(spreads, pairs=pairs), reps, n)


def symmetric(rng: np.random.Generator, spreads: Spreads, reps: int, n: int) -> Floats:
    """The same with random signs: the null hypothesis of the signed-rank test, exactly."""
    return as_they_are(rng, spreads, reps, n) * rng.choice([-1.0, 1.0], size=(reps, n))


def skewed(centre: float) -> World:
    """Return the world of exponential differences (skewness 2) in which this quantity of the exponential is 0."""
    return lambda rng, spreads, reps, n: np.asarray(SD * (rng.exponential(size=(reps, n)) - centre))


def unequal_spread(rng: np.random.Generator, spreads: Spreads, reps: int, n: int) -> Floats:
    """Normal differences whose standard deviations go from 1 to 10 over the tasks, .03 in the square mean."""
    spread = np.geomspace(1, RATIO, n)
    spread = rng.permuted(np.tile(SD * spread / np.sqrt((spread**2).mean()), (reps, 1)), axis=1)
    return np.asarray(spread * rng.normal(size=(reps, n)))


def related(rho: float) -> World:
    """Return a world whose tasks come in blocks of four that share an effect; correlation `rho` within a block."""

    def world(rng: np.random.Generator, spreads: Spreads, reps: int, n: int) -> Floats:
        shared = symmetric(rng, spreads, reps, -(-n // BLOCK))
        alone = symmetric(rng, spreads, reps, n)
        return np.sqrt(rho) * np.repeat(shared, BLOCK, axis=1)[:, :n] + np.sqrt(1 - rho) * alone

    return world


def five_designs(rng: np.random.Generator, spreads: Spreads, reps: int, n: int, kind: str) -> Floats:
    """Draw scores [reps, n, 5] of five equally good designs.

    kind "real": all means are equal; "symmetric": each task's residuals have a random sign as well, the null hypothesis
    of the paired tests; "exchangeable": they are also dealt to the designs at random, the null hypothesis of Friedman.
    """
    families = spreads.families
    which = rng.integers(len(families), size=(reps, 1))
    drawn = families[which, rng.integers(families.shape[1], size=(reps, n))]
    drawn = drawn + rng.normal(0, NOISE * SD / np.sqrt(2), size=drawn.shape)
    if kind == "exchangeable":
        drawn = rng.permuted(drawn, axis=2)
    return np.asarray(drawn if kind == "real" else drawn * rng.choice([-1.0, 1.0], size=(reps, n, 1)))


WORLDS: dict[str, World] = {
    "symmetric": symmetric,
    "real, as they are": as_they_are,
    "real, signs shuffled": signs_shuffled,
    "real, pseudomedian 0": pseudomedian_zero,
    "rounded to .01": lambda *case: np.round(symmetric(*case), 2),  # scores of one decimal less: ties, some zeros
    "a quarter zeros": lambda rng, *case: symmetric(rng, *case) * (rng.random(case[1:]) >= 0.25),
    "unequal spread": unequal_spread,
    "heavy tails": lambda rng, spreads, reps, n: SD / np.sqrt(3) * rng.standard_t(3, size=(reps, n)),  # SD .03
    "skewed, mean 0": skewed(1),
    "skewed, median 0": skewed(np.log(2)),
    "related, rho .3": related(0.3),
    "related, rho .6": related(0.6),
}
