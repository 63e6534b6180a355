"""The losses of `objective=mixed` against literal loops in float64, chunks against the whole, what is refused."""

import math

import pytest
import torch

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.triples import Triple
from encoders.templates import DEFAULT
from training.checks import check_sizes
from training.objectives.mixed import Mixed, cosent, part_of, supcon
from training.set_up import set_up

CLASSES = [Triple("the sum", "of two arrays", ("a new shape",), "c/s", None, labels=(("x",), ("x",), ("y",)))]
CLASSES += [Triple("its type", "a new shape", ("the sum",), "c/s", None, labels=(("y",), ("y",), ("x",)))]
CLASSES += [Triple("first argument", "the sum", ("same type",), "c/s", None, labels=(("x",), ("x",), ("z",)))]
GRADED = [
    Triple(f"the {w}", f"a new {w}", (), s, None, grade=g)
    for w, s, g in (("sum", "g/s", 1.0), ("type", "g/s", 3.0), ("shape", "g/s", 1.0), ("array", "g/t", 9.0))
]
PAIRS = [Triple("of two", "the sum of two arrays", ("its type",), "p/s"), Triple("the sum", "new array", (), "p/s")]
KEYS = {"hard_negatives": 1, "temperature": 0.05, "class_temperature": 0.2, "graded_temperature": 0.1}


def cosine(a, b):
    a, b = a.tolist(), b.tolist()
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def of_batch(triples, **changes):
    """Vectors of the texts of a part, by text, and its loss."""
    texts, loss = part_of(triples, None, {**KEYS, **changes}, DEFAULT)
    vectors = torch.randn(len(texts), 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return dict(zip([text for _, text in texts], vectors, strict=True)), loss(vectors).item()


def test_supcon_is_the_literal_sum_over_all_texts_of_the_classes():
    vectors, loss = of_batch(CLASSES)
    label = {
        text: label for t in CLASSES for text, label in zip((t.query, t.positive, *t.negatives), t.labels, strict=True)
    }
    terms = []
    for i, own in label.items():
        positives = [p for p, of_p in label.items() if p != i and of_p == own]
        s = {a: cosine(vectors[i], vectors[a]) / 0.2 for a in label if a != i}
        total = math.log(sum(map(math.exp, s.values())))
        terms += [sum(total - s[p] for p in positives) / len(positives)] if positives else []
    assert len(terms) == 5, "the only text of z is no anchor"
    assert loss == pytest.approx(sum(terms) / 5, rel=1e-9)


def test_cosent_is_the_literal_sum_over_pairs_of_one_source():
    vectors, loss = of_batch(GRADED)
    s = [cosine(vectors[t.query], vectors[t.positive]) / 0.1 for t in GRADED]
    terms = [
        math.exp(s[j] - s[i])
        for i in range(4)
        for j in range(4)
        if GRADED[i].grade > GRADED[j].grade and 3 not in (i, j)
    ]
    assert len(terms) == 2
    assert loss == pytest.approx(math.log(1 + sum(terms)), rel=1e-9)


def test_zero_vectors_and_batches_without_comparisons():
    same = torch.eye(4, dtype=torch.bool).repeat(2, 2)
    assert supcon(torch.zeros(8, 3), same, 0.1).item() == pytest.approx(math.log(7))
    assert supcon(torch.randn(3, 3, requires_grad=True), torch.eye(3, dtype=torch.bool), 0.1).item() == 0
    ones = torch.ones(3, 3)
    assert cosent(ones, ones, torch.arange(3), ones > 0, 0.1).item() == pytest.approx(math.log(4))
    assert cosent(ones, ones, torch.ones(3), ones > 0, 0.1).item() == 0


@pytest.fixture(scope="module")
def config(compose_cell):
    """A cell that draws no dropout, so that other chunks are the same function."""
    return lambda *more: compose_cell("mean", "bi", "objective=mixed", "data=mix", "lora.dropout=0", *more)


def test_chunks_and_gradcache_equal_the_parts_summed_by_plain_autograd(config):
    """The reference embeds each text alone, and sums the parts of a mixed batch by their weights."""
    cfg = config("objective.hard_negatives=1", "trainer.gradcache=true", "trainer.chunk_size=2")
    objective = Mixed(set_up(cfg), [*PAIRS, *CLASSES, *GRADED], [])
    with pytest.raises(UserError, match="The scores of all 2 held-out graded pairs are equal"):
        Mixed(set_up(cfg), PAIRS, [GRADED[0], GRADED[2]])
    encoder, tokenizer = objective.work.encoder, objective.work.tokenizer
    for name, p in encoder.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.05, generator=torch.Generator().manual_seed(len(name)))
    parts, rows = objective.lay_out(range(9), 0)
    assert [round(part.weight, 6) for part in parts] == [round(w, 6) for w in (2 / 9, 3 / 9, 4 / 9)]
    loss = objective.backward(parts, rows, 0)
    found = {n: p.grad.clone() for n, p in encoder.named_parameters() if p.grad is not None}
    encoder.zero_grad()
    total = torch.zeros(())
    for triples, weight in ((PAIRS, 2 / 9), (CLASSES, 1 / 3), (GRADED, 4 / 9)):
        texts, of_part = part_of(triples, None, cfg["objective"], tokenizer.template)
        vectors = [encoder(tokenizer.batch([row])) for row in tokenizer.pairs(texts)]
        total = total + weight * of_part(torch.cat(vectors))
    total.backward()
    assert loss.item() == pytest.approx(total.item(), rel=1e-5)
    scale = max(p.grad.abs().max() for p in encoder.parameters() if p.grad is not None)
    assert found
    for name, gradient in found.items():
        assert (gradient - encoder.get_parameter(name).grad).abs().max() <= 2e-5 * scale, name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("objective.class_temperature=0", r"objective.class_temperature=0 must be a number, at least 1e-06"),
        ("trainer.global_batch_size=1", "leaves nothing to compare"),
    ],
)
def test_what_leaves_nothing_to_compare_is_refused(words, message):
    with pytest.raises(UserError, match=message):
        check_sizes(plain(composed("train", ["objective=mixed", "data=mix", *words.split()])))
