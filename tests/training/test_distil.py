"""Distillation: losses against literal sums in float64, gradients by finite differences, chunks against the whole."""

import json
import math

import pytest
import torch

from cli.errors import UserError
from corpora.triples import Triple
from tests.triples import quick_run
from training.checks import check_sizes
from training.objectives.distil import distilled, taught
from training.run import train_run

TRIPLES = [
    Triple("the sum", "of two arrays", ("a new shape", "its type", "first argument"), scores=(0.9, 0.2, -0.1, 0.4)),
    Triple("a new array", "the same shape", ("of two arrays",), scores=(0.5, 0.6)),
    Triple("without", "negatives", scores=(0.3,)),
    Triple("the type", "its type", ("the sum", "a new shape"), scores=(0.8, 0.1, 0.7)),
]


def literal(kind, vectors, most, temperature, of_teacher):
    """The loss from a text's vector, document by document."""

    def cosine(a, b):
        a, b = vectors[a].tolist(), vectors[b].tolist()
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)

    terms = []
    for t in TRIPLES:
        documents = [t.positive, *t.negatives[:most]]
        s = [cosine(t.query, d) / temperature for d in documents]
        r = [x / of_teacher for x in t.scores[: len(documents)]]
        if kind == "margin_mse":
            terms += [((s[0] - s[k]) - (r[0] - r[k])) ** 2 for k in range(1, len(s))]
        elif t.negatives:
            p, q = ([math.exp(x) / sum(map(math.exp, of)) for x in of] for of in (r, s))
            terms.append(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
    return sum(terms) / len(terms)


@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize(
    ("kind", "given", "used"),
    [
        ("margin_mse", (None, None), (1.0, 1.0)),
        ("margin_mse", (0.5, 2.0), (0.5, 2.0)),
        ("kl", (None, None), (0.03, 0.03)),
        ("kl", (0.2, None), (0.2, 0.2)),
    ],
)
def test_equals_the_literal_sum_and_its_gradient_the_differences(kind, given, used, most):
    layout = taught(TRIPLES, None, most)
    vectors = torch.randn(len(layout.texts), 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    keys = {"loss": kind, "temperature": given[0], "teacher_temperature": given[1]}
    of_text = {text: vectors[i] for i, (_, text) in enumerate(layout.texts)}
    found, expected = distilled(layout, keys)(vectors).item(), literal(kind, of_text, most, *used)
    assert found == pytest.approx(expected, rel=1e-6)
    assert torch.autograd.gradcheck(distilled(layout, keys), vectors.requires_grad_(True))


def test_closed_forms():
    """A student that scores as its teacher does has no loss; of two documents KL is that of two coins."""
    layout = taught([Triple("q", "p", ("n",), scores=(1.0, 0.0))], None, None)
    unit = torch.eye(2, dtype=torch.float64)
    same, opposite = torch.stack([unit[0], *unit]), torch.stack([unit[0], unit[1], unit[0]])
    margin = {"loss": "margin_mse", "temperature": None, "teacher_temperature": None}
    assert [distilled(layout, margin)(v).item() for v in (same, opposite)] == pytest.approx([0, 4])
    kl = {"loss": "kl", "temperature": 1.0, "teacher_temperature": None}
    p = math.e / (math.e + 1)
    coins = p * math.log(p / (1 - p)) + (1 - p) * math.log((1 - p) / p)
    assert [distilled(layout, kl)(v).item() for v in (same, opposite)] == pytest.approx([0, coins])


@pytest.fixture
def cfg(compose_cell, tmp_path):
    path = tmp_path / "taught.jsonl"
    names = {"query": "query", "positive": "positive", "negative": "negatives", "scores": "scores"}
    rows = [{key: getattr(t, of) for key, of in names.items()} for t in TRIPLES * 6]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return compose_cell("mean", "causal", *quick_run(path), "objective=distil")


def test_data_without_scores_or_negatives_are_refused(cfg, tmp_path):
    bare = {"query": "q", "positive": "p"}
    for row, message in ((bare, "24 of 24 records of data=jsonl have none"), (bare | {"scores": [1]}, "no record of")):
        (tmp_path / "taught.jsonl").write_text((json.dumps(row) + "\n") * 24)
        with pytest.raises(UserError, match=message):
            train_run(cfg, tmp_path / "run")
    cfg["objective"]["loss"] = "mse"
    with pytest.raises(UserError, match=r"objective\.loss=mse must be one of margin_mse, kl"):
        check_sizes(cfg)
