"""Agreement of partitions, failed pairs and topics against counting one by one and formulas written out."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest

from representation.moee.clusters import agreement, class_tf_idf, deviation, pair_jaccard, shares, topics

RNG = np.random.default_rng(0)
CASES = [(RNG.integers(0, a, 30), RNG.integers(0, b, 30)) for a, b in ((3, 3), (4, 3), (2, 5), (5, 5))]
TEXTS = ["red sky red sea", "the sea and the sky", "green tree", "green leaf of a tree", "tree sky", "leaf"]
LABELS = np.array([4, 4, 7, 7, 7, 2])


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


def test_deviations_by_hand():
    """True ranks 1.5 1.5 3.5 3.5 (two labels), found 1 3 2 4."""
    found = deviation(np.array([0.1, 0.5, 0.3, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    assert found.tolist() == [0.125, 0.375, 0.375, 0.125]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.6])
def test_shares_by_counting(threshold):
    rng = np.random.default_rng(0)
    one, other = rng.random(50), rng.random(50)
    found = shares(one, other, threshold)
    failed = [(a > threshold, b > threshold) for a, b in zip(one, other, strict=True)]
    some = [pair for pair in failed if any(pair)]
    assert found["pairs"] == len(some)
    assert found["one_alone"] == pytest.approx(some.count((True, False)) / len(some))
    assert found["other_alone"] == pytest.approx(some.count((False, True)) / len(some))
    assert found["one_alone"] + found["other_alone"] + found["both"] == pytest.approx(1)


def test_topics_are_those_of_the_formula():
    """tf_{t,c} log(1 + A / tf_t), over the words that are no stop words."""
    stop = {"the", "and", "of", "a"}
    words = {c: [w for t, k in zip(TEXTS, LABELS, strict=True) if k == c for w in t.split()] for c in (7, 4, 2)}
    words = {c: [w for w in of_c if w not in stop] for c, of_c in words.items()}
    everything = [w for of_c in words.values() for w in of_c]
    average = len(everything) / 3
    for row, (_, of_c) in zip(topics(TEXTS, LABELS, 2), words.items(), strict=True):
        weight = {w: of_c.count(w) * math.log(1 + average / everything.count(w)) for w in of_c}
        assert row["words"] == ", ".join(sorted(weight, key=lambda w: (-weight[w], w))[:2])
    assert [row["texts"] for row in topics(TEXTS, LABELS, 2)] == [3, 2, 1]
    counts = np.array([[3, 1], [0, 4]])
    assert class_tf_idf(counts) == pytest.approx(
        np.array([[3 * math.log(1 + 4 / 3), math.log(1 + 4 / 5)], [0, 4 * math.log(1 + 4 / 5)]])
    )


def test_a_cluster_of_no_word_has_no_topic():
    assert topics(["red", "the"], np.array([0, 1]), 3)[1] == {"texts": 1, "words": ""}
