"""Topics against the formula written out word by word, and won pairs against a search through all pairs."""

import math
import re

import numpy as np
import pytest
from scipy.stats import rankdata

from cli.errors import UserError
from representation.moee.pair_tasks import PairTask
from representation.moee.topics import class_tf_idf, topics, won_pairs

TEXTS = ["red sky red sea", "the sea and the sky", "green tree", "green leaf of a tree", "tree sky", "leaf"]
LABELS = np.array([4, 4, 7, 7, 7, 2])


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
    with pytest.raises(UserError, match="hold no word that could name a topic"):
        topics(["the", "of"], np.array([0, 1]), 3)


def test_won_pairs_are_those_of_a_search():
    rng = np.random.default_rng(0)
    texts, truth = [f"text {k}" for k in range(40)], rng.normal(size=40)
    task = PairTask("T", "STS", texts, [f"right {k}" for k in range(40)], truth, np.arange(40))
    similarity = {"HS": truth + rng.normal(size=40), "RW": truth + rng.normal(size=40)}
    off = {name: abs(rankdata(values) - rankdata(truth)) / 40 for name, values in similarity.items()}
    rows = won_pairs(task, similarity, 0.2, 100)
    for winner, loser in (("HS", "RW"), ("RW", "HS")):
        of_winner = [row for row in rows if row["ahead"] == winner]
        wanted = {k for k in range(40) if off[winner][k] <= 0.2 < off[loser][k]}
        assert {int(re.sub(r"\D", "", row["left"])) for row in of_winner} == wanted != set()
        assert [row["by"] for row in of_winner] == sorted((row["by"] for row in of_winner), reverse=True)
        assert of_winner[0]["by"] == pytest.approx(max(off[loser][k] - off[winner][k] for k in wanted))
        assert won_pairs(task, similarity, 0.2, 1)[winner == "RW"] == of_winner[0]
