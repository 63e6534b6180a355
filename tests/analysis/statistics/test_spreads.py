"""Spreads of a two-way table against an analysis of variance by sums of squares, and planted ones recovered."""

import numpy as np
import pytest
from scipy.stats import f

from analysis.statistics.spreads import Spread, pooled, ratio, spread


def planted(rng, shape, *, seed, machine, rest):
    """Tables [designs, seeds, machines] of runs whose parts have these standard deviations."""
    designs, seeds, machines = shape
    parts = [(seeds, machines, rest), (seeds, 1, seed), (1, machines, machine)]
    return sum(rng.normal(0, sd, (designs, rows, columns)) for rows, columns, sd in parts)


def test_the_spread_is_that_of_the_mean_squares():
    """By loops: mean squares of machine and rest, their expected sum, and Satterthwaite's df of that sum."""
    (table,) = planted(np.random.default_rng(0), (1, 4, 3), seed=1, machine=0.4, rest=0.5)
    grand, rows, columns = table.mean(), table.mean(axis=1), table.mean(axis=0)
    machine = sum(4 * (columns[m] - grand) ** 2 for m in range(3)) / 2
    left = sum((table[s, m] - rows[s] - columns[m] + grand) ** 2 for s in range(4) for m in range(3)) / 6
    parts = np.array([machine / 4, 3 * left / 4])
    found = spread(table)
    assert found.variance == pytest.approx(parts.sum())
    assert found.variance == pytest.approx(np.mean([np.var(row, ddof=1) for row in table]))
    assert found.df == pytest.approx(parts.sum() ** 2 / (parts**2 / [2, 6]).sum())


def test_planted_spreads_are_recovered():
    (table,) = planted(np.random.default_rng(1), (1, 400, 300), seed=0.004, machine=0.001, rest=0.002)
    assert spread(table).sd == pytest.approx(np.hypot(0.001, 0.002), rel=0.05)
    assert spread(table.T).sd == pytest.approx(np.hypot(0.004, 0.002), rel=0.05)
    assert ratio(spread(table), spread(table.T))[0] == pytest.approx(0.5, rel=0.1)


def test_df_lie_between_machines_less_one_and_all():
    alone = np.arange(3.0)[:, None] + np.array([0, 0.1, 0.3])  # no rest: seeds say nothing of machines
    assert spread(alone).df == pytest.approx(2)
    assert spread(alone[:1]).df == 2
    assert np.isnan(spread(alone[:, :1]).variance)
    flat = spread(alone[:, :1] + np.zeros(4))
    assert (flat.variance, flat.df) == (0, 9)
    assert ratio(flat, spread(alone)) == (0, 0, 0)
    assert np.isnan(ratio(spread(alone), flat)).all()


def test_pooled_spreads_of_one_size_have_the_sum_of_df():
    whole = pooled([Spread(4.0, 3.0), Spread(4.0, 3.0)])
    assert (whole.variance, whole.df) == (4, 6)
    uneven = pooled([Spread(4.0, 3.0), Spread(1.0, 5.0)])  # Welch's degrees of freedom
    assert (uneven.variance, uneven.df) == (2.5, pytest.approx(25 / (16 / 3 + 1 / 5)))
    assert pooled([Spread(0.0, 3.0), Spread(0.0, 5.0)]).df == 8


def test_the_interval_of_a_ratio_holds_it_and_says_seldom_that_equals_differ():
    """1,000 studies of one design: standard error .7 %; independent parts, then all rest (see `ratio`)."""
    rng, held = np.random.default_rng(2), []
    for own, rest in ((1, 0), (0, 1)):
        tables = planted(rng, (1000, 5, 4), seed=own, machine=own, rest=rest)
        ends = [ratio(spread(table), spread(table.T))[1:] for table in tables]
        held.append(np.mean([low <= 1 <= high for low, high in ends]))
    assert held[0] == pytest.approx(0.95, abs=0.02)
    assert held[1] > 0.98
    low, high = ratio(Spread(2.0, 4.0), Spread(1.0, 6.0))[1:]
    assert f.cdf([2 / high**2, 2 / low**2], 4, 6) == pytest.approx([0.025, 0.975])
