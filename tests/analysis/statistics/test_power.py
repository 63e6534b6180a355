"""Power of the primary test: the components against those planted, and the chance against simulated studies."""

import numpy as np
import pytest

from analysis.statistics.power import components, detectable, power
from analysis.statistics.seeds import pair_test, spreads, two_sided

FIRST, SECOND = np.zeros(3, dtype=int), np.arange(1, 4)


def studies(count, seeds, draw=0, tasks=40):
    """Scores [count, 4 designs, tasks, seeds]; SD of task .02, of seed .006 and of the rest .01."""
    rng = np.random.default_rng(draw)
    parts = ((0.02, (tasks, 1)), (0.006, (1, seeds)), (0.01, (tasks, seeds)))
    return sum(sd * rng.normal(size=(count, 4, *shape)) for sd, shape in parts)


def test_components_are_those_planted():
    found = components(spreads(studies(1, 200, tasks=800)[0]), FIRST, SECOND)
    assert np.sqrt(found.of_tasks) == pytest.approx([0.02 * 2**0.5] * 3, rel=0.06)
    assert np.sqrt(found.of_seeds) == pytest.approx(np.full((2, 3), 0.006), rel=0.15)
    assert np.sqrt(found.of_rest) == pytest.approx(np.full((2, 3), 0.01), rel=0.01)


@pytest.mark.parametrize("seeds", [(3, 3), (5, 5), (3, 10)])
def test_the_chance_is_that_of_simulated_studies(seeds):
    of = components(spreads(studies(1, 300, tasks=600)[0]), FIRST, SECOND)
    of = type(of)(40, of.of_tasks, of.of_seeds, of.of_rest, of.pooled)
    size = detectable(of, 0.05, seeds)
    np.testing.assert_allclose(power(of, size, 0.05, seeds), 0.8, rtol=1e-4)
    cubes = studies(1500, max(seeds), 1)
    cubes[:, 0, :, seeds[0] :] = np.nan
    cubes[:, 1:, :, seeds[1] :] = np.nan
    cubes[:, 1:] += size[:, None, None]
    found = (two_sided(pair_test(spreads(cubes), FIRST, SECOND)) <= 0.05).mean()
    assert found == pytest.approx(0.8, abs=0.03)


def test_below_three_seeds_nothing_is_detectable():
    seeds = np.stack([np.arange(1, 6)[:, None]] * 2)
    found = detectable(components(spreads(studies(1, 3)[0]), FIRST, SECOND), 0.05, seeds)
    assert np.isnan(found[:2]).all()
    assert (np.diff(found[2:], axis=0) < 0).all(), "more seeds find smaller differences"
