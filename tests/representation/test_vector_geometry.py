"""Each number of a cloud of vectors against a literal loop and a closed form."""

from itertools import combinations

import numpy as np
import pytest

from poolers.shared.vector_geometry import alignment, uniformity
from representation.geometry import anisotropy, centred_effective_rank, effective_rank


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(17, 5)) + 0.3


def unit_by_loop(vectors):
    return [v / np.sqrt(sum(a * a for a in v)) for v in vectors]


def test_anisotropy_is_the_mean_cosine_of_pairs(vectors):
    own = unit_by_loop(vectors)
    assert anisotropy(vectors) == pytest.approx(np.mean([a @ b for a, b in combinations(own, 2)]))
    assert anisotropy(np.outer([1, 2, 3], [1.0, 1.0])) == pytest.approx(1)
    assert anisotropy(np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])) == pytest.approx(-1 / 3)


def test_alignment_and_uniformity_over_pairs(vectors):
    other = vectors[::-1]
    pairs = zip(unit_by_loop(vectors), unit_by_loop(other), strict=True)
    assert alignment(vectors, other) == pytest.approx(np.mean([((a - b) ** 2).sum() for a, b in pairs]))
    assert alignment(vectors, -2 * vectors) == pytest.approx(4)
    own = unit_by_loop(vectors)
    expected = np.log(np.mean([np.exp(-2 * ((a - b) ** 2).sum()) for a, b in combinations(own, 2)]))
    assert uniformity(vectors) == pytest.approx(expected)


def test_effective_rank_of_known_singular_values_and_without_the_common_part():
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    assert effective_rank(turn[:3]) == pytest.approx(3)  # three rows at right angles
    assert effective_rank(np.outer([1, 2, 3], [1.0, 2])) == pytest.approx(1)
    # twice e1, once e2: singular values sqrt(2) and 1
    p = np.sqrt(2) / (np.sqrt(2) + 1)
    expected = np.exp(-p * np.log(p) - (1 - p) * np.log(1 - p))
    assert effective_rank(np.array([[1.0, 0], [1, 0], [0, 1]])) == pytest.approx(expected)
    poles = np.array([[10.0, 1], [10, -1]])
    assert centred_effective_rank(poles) == pytest.approx(1)
    assert effective_rank(poles) > 1.1
    assert np.isnan(centred_effective_rank(np.ones((3, 2))))
