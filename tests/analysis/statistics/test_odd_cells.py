"""Planted errors are found, few others are called far off, and no order or shift changes which."""

import numpy as np
import pytest

from analysis.statistics.odd_cells import odd_cells


def table(models, tasks, seed=0, noise=0.02, least=0.25):
    rng = np.random.default_rng(seed)
    tails = rng.standard_t(4, size=(tasks, models)) * noise
    return rng.uniform(least, 0.85, (tasks, 1)) + rng.normal(0, 0.03, (1, models)) + tails


@pytest.mark.parametrize(("models", "tasks"), [(3, 5), (3, 40), (5, 8), (5, 40), (40, 12)])
def test_a_planted_error_is_found_alone(models, tasks):
    """A score of .05, and a fraction in a table of percents, each at another place of another table."""
    missed = others = 0
    for seed in range(40):
        scores = table(models, tasks, seed, noise=0.01, least=0.45)
        place = seed % tasks, (7 * seed) % models
        scores[place] = 0.05 if seed % 2 else scores[place] / 100
        found = odd_cells(scores).odd
        missed += not found[place]
        others += found.sum() - found[place]
    assert missed <= (4 if models == 3 else 2), "where a task's few scores lie far apart an error may be one of them"
    assert others <= max(2, 0.001 * 40 * models * tasks)


def test_several_errors_do_not_hide_one_another():
    scores = table(12, 30)
    places = [(3, 4), (3, 5), (17, 4), (25, 9), (8, 4)]  # two on one task, three of one model
    for place in places:
        scores[place] = 0.02
    assert set(map(tuple, np.argwhere(odd_cells(scores).odd).tolist())) == set(places)


def test_a_model_that_is_far_behind_everywhere_is_not_odd_anywhere():
    scores = table(8, 20, noise=0.005)
    scores[:, 2] -= 0.2
    scores[6] -= 0.2  # nor a task that is hard for all
    assert not odd_cells(scores).odd.any()


@pytest.mark.parametrize("models", [3, 5, 20])
def test_scores_without_errors_are_rarely_called_far_off(models):
    """Heavy tails (t of 4), an SD of .028, more than designs of one study have: a score in two hundred at most."""
    share = np.mean([odd_cells(table(models, 40, seed)).odd.mean() for seed in range(40)])
    assert share < 0.005


def test_gaps_order_and_shift_change_nothing():
    scores = table(9, 15)
    scores[4, 3] = 0.0
    scores[2, 5] = scores[11, 0] = np.nan
    found = odd_cells(scores)
    assert found.odd[4, 3]
    assert not found.odd[2, 5]
    rows, columns = np.random.default_rng(1).permutation(15), np.random.default_rng(2).permutation(9)
    again = odd_cells(scores[rows][:, columns] + 0.05)
    np.testing.assert_array_equal(again.odd, found.odd[rows][:, columns])
    assert found.median[4] == np.median(scores[4])


def test_two_models_or_four_tasks_tell_nothing():
    assert not odd_cells(np.array([[0.5, 0.01]] * 9)).odd.any()
    assert not odd_cells(table(9, 4)).odd.any()
    assert not odd_cells(np.full((6, 6), 0.5)).odd.any()


def test_a_published_table_has_fifteen(published):
    frame = published.frame()
    found = odd_cells(frame.to_numpy().T / 100)
    named = {(frame.index[m], frame.columns[t]) for t, m in np.argwhere(found.odd)}
    assert len(named) == 15
    assert published.odd <= named
    assert {model for model, _ in named if model.startswith("BAAI__bge-")} == set()
