"""Matryoshka: the loss against a literal sum over prefixes in float64; settings that cannot be are refused."""

import math

import pytest
import torch

from cli.errors import UserError
from corpora.triples import Triple
from training.checks import check_sizes
from training.cost import check
from training.objectives.infonce import candidates, contrastive_loss, infonce, matryoshka

DIMS = [2, 3, 7]


def literal(queries, documents, masked, temperature, d):
    """InfoNCE of the first d entries, pair by pair."""
    q, k = queries.double()[:, :d], documents.double()[:, :d]
    total = 0.0
    for i in range(len(q)):
        cosines = [float(sum(q[i] * k[j]) / math.sqrt(sum(q[i] ** 2) * sum(k[j] ** 2))) for j in range(len(k))]
        allowed = [math.exp(cosines[j] / temperature) for j in range(len(k)) if not masked[i, j]]
        total -= math.log(math.exp(cosines[i] / temperature) / sum(allowed))
    return total / len(q)


def test_equals_the_literal_mean():
    draw = torch.Generator().manual_seed(0)
    q, d = torch.randn(4, 7, generator=draw), torch.randn(9, 7, generator=draw)
    masked = torch.rand(4, 9, generator=draw) < 0.3
    masked[range(4), range(4)] = False
    found = matryoshka(lambda a, b: infonce(a, b, masked, 0.2), q, d, DIMS)
    each = [literal(q, d, masked, 0.2, n) for n in DIMS]
    assert found.item() == pytest.approx(sum(each) / 3, rel=1e-5)
    assert max(each) - min(each) > 0.05, "prefixes differ, or the test could not tell them"
    whole = infonce(q, d, masked, 0.2)
    for none in (None, []):
        assert torch.equal(matryoshka(lambda a, b: infonce(a, b, masked, 0.2), q, d, none), whole)
    assert torch.equal(matryoshka(lambda a, b: infonce(a, b, masked, 0.2), q, d, [7]), whole)


def test_the_objective_uses_it():
    layout = candidates([Triple("a", "b", ("c",)), Triple("d", "e")], None, None)
    vectors = torch.randn(len(layout.texts), 7, generator=torch.Generator().manual_seed(0))
    keys = {"temperature": 0.2, "loss_dtype": "fp32"}
    each = [contrastive_loss(layout, {**keys, "matryoshka": [d]})(vectors).item() for d in DIMS]
    assert contrastive_loss(layout, {**keys, "matryoshka": DIMS})(vectors).item() == pytest.approx(sum(each) / 3)


def test_entries_beyond_every_prefix_get_no_gradient():
    q, d = torch.randn(4, 7, requires_grad=True), torch.randn(4, 7)
    matryoshka(lambda a, b: infonce(a, b, torch.zeros(4, 4).bool(), 0.2), q, d, [2, 3]).backward()
    assert (q.grad != 0).any(dim=0).tolist() == [True] * 3 + [False] * 4


@pytest.mark.parametrize("dims", [[64, 32], 64, []])
def test_what_cannot_be_is_refused(compose_cell, dims):
    cfg = compose_cell("mean", "causal", f"objective.matryoshka={dims}")
    with pytest.raises(UserError, match="rising"):
        check_sizes(cfg)


def test_a_prefix_longer_than_the_vector_is_refused(compose_cell):
    with pytest.raises(UserError, match="goes beyond the 32 entries"):
        check(compose_cell("mean", "causal", "objective.matryoshka=[16,33]"))
