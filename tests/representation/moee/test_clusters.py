"""Agreement of partitions against counting pairs one by one and trying every matching."""

from itertools import combinations, permutations

import numpy as np
import pytest

from representation.moee.clusters import agreement, pair_jaccard, partition

RNG = np.random.default_rng(0)
CASES = [(RNG.integers(0, a, 30), RNG.integers(0, b, 30)) for a, b in ((3, 3), (4, 3), (2, 5), (5, 5))]


def literal_exact(one, two):
    """The best share of texts in agreement over every way to rename the clusters of one as those of two."""
    most = max(one.max(), two.max()) + 1
    return max(np.mean([names[a] == b for a, b in zip(one, two, strict=True)]) for names in permutations(range(most)))


@pytest.mark.parametrize("case", CASES)
def test_against_enumeration(case):
    one, two = case
    found = agreement(one, two)
    together = [(one[i] == one[j], two[i] == two[j]) for i, j in combinations(range(30), 2)]
    both, either = sum(a and b for a, b in together), sum(a or b for a, b in together)
    assert found["jaccard"] == pytest.approx(both / either)
    assert found["exact"] == pytest.approx(literal_exact(one, two))
    n = len(together)
    first, second = sum(a for a, _ in together), sum(b for _, b in together)
    by_chance = first * second / n
    assert found["rand"] == pytest.approx((both - by_chance) / ((first + second) / 2 - by_chance))


def test_jaccard_of_matched_clusters_by_hand():
    """Clusters {0,1,2},{3,4},{5} and {0,1},{2,3,4},{5}: matched 2 of 3, 2 of 3, 1 of 1."""
    one, two = np.array([0, 0, 0, 1, 1, 2]), np.array([7, 7, 3, 3, 3, 1])
    found = agreement(one, two)
    assert found["matched_jaccard"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert found["exact"] == pytest.approx((2 + 2 + 1) / 6)


def test_the_same_partition_under_other_names_is_one_in_all():
    one = np.array([0, 0, 1, 1, 2, 2, 2])
    found = agreement(one, np.array([5, 5, 9, 9, 1, 1, 1]))
    assert list(found.values()) == pytest.approx([1.0] * 6)
    assert pair_jaccard(np.eye(3, dtype=int)) == 1.0


def test_chance_is_zero_on_average_where_it_is_corrected_for():
    found = [agreement(RNG.integers(0, 6, 200), RNG.integers(0, 6, 200)) for _ in range(50)]
    for key in ("rand", "mutual"):
        assert abs(np.mean([f[key] for f in found])) < 0.01
    assert np.mean([f["nmi"] for f in found]) > 0.03


def test_k_means_finds_directions_whatever_their_length():
    directions = np.repeat(np.eye(3, 5), 20, axis=0) + RNG.normal(size=(60, 5)) * 0.05
    vectors = (directions * RNG.uniform(0.5, 20, size=(60, 1))).astype(np.float32)
    assert agreement(partition(vectors, 3, 0), np.repeat(np.arange(3), 20))["exact"] == 1.0
