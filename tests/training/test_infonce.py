"""InfoNCE against closed forms and a literal double loop in float64."""

import math

import pytest
import torch

from corpora.triples import Triple
from training.objectives.infonce import candidates, infonce


def literal(queries, documents, masked, temperature):
    q, d = queries.double(), documents.double()
    total = 0.0
    for i in range(len(q)):
        s = [float(torch.dot(q[i], d[k]) / q[i].norm() / d[k].norm()) / temperature for k in range(len(d))]
        allowed = [s[k] for k in range(len(d)) if not masked[i, k]]
        total += math.log(sum(math.exp(x - s[i]) for x in allowed))
    return total / len(q)


def test_zero_vectors_give_log_of_the_candidates():
    loss = infonce(torch.zeros(4, 8), torch.zeros(10, 8), torch.zeros(4, 10, dtype=torch.bool), 0.05)
    assert loss.item() == pytest.approx(math.log(10))


@pytest.mark.parametrize("temperature", [0.02, 0.05, 1.0])
def test_equals_the_literal_sum(temperature):
    torch.manual_seed(0)
    q, d = torch.randn(5, 7), torch.randn(12, 7) * 3
    masked = torch.rand(5, 12) < 0.3
    masked[range(5), range(5)] = False
    assert infonce(q, d, masked, temperature).item() == pytest.approx(literal(q, d, masked, temperature), rel=1e-5)


def test_float32_tells_cosines_apart_that_bf16_would_not():
    q = torch.tensor([[1.0, 0.0]])
    d = torch.tensor([[0.9000, 0.435890], [0.9001, 0.435683]])
    masked = torch.zeros(1, 2, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        loss = infonce(q, d, masked, 0.0001)
    assert loss.item() == pytest.approx(literal(q, d, masked, 0.0001), rel=1e-2)
    assert loss.item() > 1.2, "the harder negative wins by 1e-4 of cosine"
    assert infonce(q, d, masked, 0.0001, torch.bfloat16).item() == pytest.approx(math.log(2), rel=1e-2)


def test_layout_masks_false_negatives():
    triples = [
        Triple("q0", "a", ("n0", "b")),  # its hard negative b is example 1's positive
        Triple("q1", "b", ("b", "n1")),  # a negative equal to its own positive
        Triple("q2", "a"),  # example 0's positive once more
        Triple("q0", "c"),  # example 0's query with another positive
    ]
    layout = candidates(triples, None, None)
    texts = [t for _, t in layout.texts]
    documents = [texts[k] for k in layout.documents]
    assert documents == ["a", "b", "a", "c", "n0", "b", "b", "n1"]
    masked = [{(k, documents[k]) for k in range(8) if row[k]} for row in layout.masked]
    assert masked == [{(2, "a"), (3, "c")}, {(5, "b"), (6, "b")}, {(0, "a")}, {(0, "a"), (2, "a")}]
    assert len(texts) == len(set(texts)), "each text is encoded once"


def test_no_known_positive_of_a_query_is_its_negative_whoever_brings_it():
    """By a literal loop: texts that the batch has as positives of the same query, as another's document or negative."""
    queries, answers = ("q0", "q1", "q0", "q2", "q0"), ("a", "b", "c", "c", "d")
    triples = [Triple(q, a, (n,)) for q, a, n in zip(queries, answers, ("d", "c", "b", "a", "n"), strict=True)]
    layout = candidates(triples, None, None)
    documents = [layout.texts[k][1] for k in layout.documents]
    known = {q: {a for other, a in zip(queries, answers, strict=True) if other == q} for q in queries}
    for i, (query, row) in enumerate(zip(queries, layout.masked.tolist(), strict=True)):
        assert row == [k != i and text in known[query] for k, text in enumerate(documents)]


def test_hard_negatives_none_one_many():
    triples = [Triple("q0", "a", ("x", "y", "z")), Triple("q1", "b")]
    assert [len(candidates(triples, None, k).documents) for k in (0, 1, 2, None)] == [2, 3, 4, 5]


def test_a_document_that_is_the_query_is_masked():
    layout = candidates([Triple("same", "a"), Triple("q1", "same")], None, None)
    assert layout.masked.tolist() == [[False, True], [False, False]]


def test_instruction_makes_a_text_another_one():
    layout = candidates([Triple("same", "a"), Triple("q1", "same")], "find", None)
    assert ("find", "same") in layout.texts
    assert ("", "same") in layout.texts


def test_small_losses_are_those_of_gradient_accumulation():
    torch.manual_seed(0)
    triples = [Triple(f"q{i}", f"p{i}", tuple(f"n{i}{k}" for k in range(i % 3))) for i in range(6)]
    vectors = {text: torch.randn(5) for t in triples for text in (t.query, t.positive, *t.negatives)}

    def loss(layout):
        texts = [text for _, text in layout.texts]
        q, d = (torch.stack([vectors[texts[k]] for k in where]) for where in (layout.queries, layout.documents))
        return infonce(q, d, layout.masked, 0.05).item()

    micro = [loss(candidates(triples[k : k + 2], None, None)) for k in (0, 2, 4)]
    assert loss(candidates(triples, None, None, loss_queries=2)) == pytest.approx(sum(micro) / 3, rel=1e-5)
    assert loss(candidates(triples, None, None)) > sum(micro) / 3, "more negatives are harder"


def test_no_text_of_the_label_is_a_negative():
    """By a literal double loop in float64 over who may be compared with whom; pairs and classes keep to themselves."""
    labels = ["x", "y", "x", "z", "y", "x"]
    triples = [
        Triple(f"q{i}", f"p{i}", (f"n{i}",), labels=((one,), (one, "y") if i == 3 else (one,), (two,)))
        for i, (one, two) in enumerate(zip(labels, "zxyyxy", strict=True))
    ]
    triples += [Triple(f"q{i}", f"p{i}", (f"n{i}",)) for i in (6, 7)]
    layout = candidates(triples, None, None)
    torch.manual_seed(0)
    vectors = {place: torch.randn(6) for place in range(len(layout.texts))}
    of_texts = [[set(names) for names in t.labels] or [set()] * 3 for t in triples]
    of_document = [texts[1] for texts in of_texts] + [texts[2] for texts in of_texts]
    total = 0.0
    for i, t in enumerate(triples):
        cosines = {}
        for k, label in enumerate(of_document):
            if k == i or (t.labels and label and not label & of_texts[i][0]) or not (t.labels or label):
                q, d = (vectors[int(places)].double() for places in (layout.queries[i], layout.documents[k]))
                cosines[k] = float(q @ d / q.norm() / d.norm()) / 0.05
        total += math.log(sum(math.exp(x - cosines[i]) for x in cosines.values())) / len(triples)
    q, d = (torch.stack([vectors[int(k)] for k in places]) for places in (layout.queries, layout.documents))
    assert infonce(q, d, layout.masked, 0.05).item() == pytest.approx(total, rel=1e-5)
    assert not candidates(triples, None, None, mask_duplicates=False).masked.any()
