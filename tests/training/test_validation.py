"""Validation: nDCG@10 by hand, and queries encoded under their own instructions, as training does."""

import math

import numpy as np
import pytest

from corpora.triples import Triple
from encoders.loading import untrained
from encoders.templates import template_of
from training.objectives.infonce import candidates
from training.validation import Validation, ndcg_at_10

OF_ALL = "find the type"
TRIPLES = [
    Triple("the sum of two arrays", "the sum is returned", ("a new shape",), instruction="find the sum"),
    Triple("the shape of an array", "a new shape", ("the sum is returned",)),
    Triple("type of its argument", "the argument has the same type", instruction="two arrays"),
    Triple("the sum of two arrays", "two arrays with the sum", instruction="find the sum"),
]
WRITTEN = [t.instruction or OF_ALL for t in TRIPLES]


@pytest.fixture(params=["instruct", "e5"])
def cfg(request, compose_cell):
    return compose_cell("mean", "bi", f"template={request.param}", "max_length=64")


def one_by_one(encoder, template, queries, instructions):
    """[N, E]: each query encoded by itself under its own instruction."""
    asked = [template.asked(i, "query") for i in instructions]
    return np.concatenate([encoder.encode([q], a) for q, a in zip(queries, asked, strict=True)])


def test_validation_encodes_each_query_with_its_own_instruction(cfg):
    encoder, template = untrained(cfg), template_of(cfg)
    validation = Validation(encoder, TRIPLES, OF_ALL)
    queries = one_by_one(encoder, template, [t.query for t in TRIPLES], WRITTEN)
    documents = ["the sum is returned", "a new shape", "the argument has the same type", "two arrays with the sum"]
    vectors = encoder.encode(documents, template.asked("", "document"))
    seen = []
    encode = encoder.encode

    def watched(texts, instruction=""):
        found = encode(texts, instruction)
        seen.extend(zip([instruction] * len(texts), texts, found, strict=True))
        return found

    encoder.encode = watched
    both = np.zeros((4, 4), dtype=bool)
    both[0, 3] = both[3, 0] = True  # one query with two positives: neither is wrong
    assert validation.score() == pytest.approx(ndcg_at_10(queries, vectors, range(4), both))
    assert (validation.left_out == both).all()
    given = {(asked, text): vector for asked, text, vector in seen}
    for query, triple, instruction in zip(queries, TRIPLES, WRITTEN, strict=True):
        np.testing.assert_allclose(given[template.asked(instruction, "query"), triple.query], query, atol=2e-6)
    layout = candidates(TRIPLES, OF_ALL, 1, template=template)
    assert set(layout.texts) == set(given), "what is validated is written as what is trained on"


def test_a_document_of_any_label_of_the_query_is_not_wrong(cfg):
    """Two judgements of the same texts, in which the text "both" is of x and of y."""
    x, y, both = ("x",), ("y",), ("x", "y")
    of_x = Triple("the sum", "both", ("of y",), labels=(x, both, y))
    of_y = Triple("the type", "of y", ("of x",), labels=(y, y, x))
    of_both = Triple("both", "of x", labels=(both, x))
    found = Validation(untrained(cfg), [of_x, of_y, of_both], None)
    assert found.documents == ["both", "of y", "of x"]
    assert found.left_out.tolist() == [[False, False, True], [True, False, False], [True, True, False]]


def test_ndcg_with_one_relevant_document():
    documents = np.eye(12, dtype=np.float32)
    queries = documents[[3, 5]].copy()
    queries[1, 7] = 2.0  # document 7 comes first, the right one second
    assert ndcg_at_10(queries, documents, [3, 5]) == (1 + 1 / math.log2(3)) / 2
    assert ndcg_at_10(np.ones((1, 12), np.float32), documents, [0]) == 0.0, "all tied: no credit for luck"


def test_ndcg_of_vectors_of_zeros_is_no_luck():
    documents = np.eye(12, dtype=np.float32)
    documents[4] = 0.0
    queries = np.stack([np.zeros(12, np.float32), documents[3]])
    assert ndcg_at_10(queries, documents, [0, 3]) == 0.5, "a query of zeros ties with all twelve, so its rank is 12"
