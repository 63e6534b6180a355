"""Triples from docstrings: who is whose negative, that nothing occurs twice, and that chance plays no part."""

import random

import pytest

from corpora.docstring_pairs import docstring_triples, usable
from corpora.docstrings import BODY_CHARS, SUMMARY_CHARS, Docstring
from corpora.triples import Triple, fingerprint


def words(draw: random.Random, count: int) -> str:
    return " ".join(f"w{draw.randrange(5000)}" for _ in range(count))


def triples(docstrings: list[Docstring]) -> list[Triple]:
    return docstring_triples(usable(docstrings))


@pytest.fixture(scope="module")
def docstrings() -> list[Docstring]:
    """Two packages of modules with 1 to 6 docstrings of random words."""
    draw = random.Random(1)
    return [
        Docstring(package, f"{package}.m{m}", f"f{i}", "function", words(draw, 8), words(draw, 30))
        for package in ("aa", "bb")
        for m in range(6)
        for i in range(m + 1)
    ]


def test_the_negative_is_another_body_of_the_same_module(docstrings):
    module = {d.body: d.module for d in docstrings}
    made = triples(docstrings)
    assert len(made) == len(docstrings)
    for t in made:
        (negative,) = t.negatives
        assert negative != t.positive
        alone = module[t.positive].endswith("m0")
        assert (module[negative] == module[t.positive]) != alone
        assert module[negative].split(".")[0] == t.source == module[t.positive].split(".")[0]


def test_each_body_is_a_negative_as_often_as_it_can_be(docstrings):
    """Cyclic: within a module every body is the negative of exactly one other."""
    made = triples([d for d in docstrings if d.module == "aa.m5"])
    assert sorted(t.negatives[0] for t in made) == sorted(t.positive for t in made)


def test_a_lone_docstring_has_no_negative(docstrings):
    assert triples(docstrings[:1])[0].negatives == ()


def test_no_query_and_no_positive_occurs_twice(docstrings):
    draw = random.Random(2)
    d = docstrings[3]
    same_query = Docstring(d.package, d.module, "g", d.kind, d.summary, words(draw, 30))
    same_body = Docstring(d.package, d.module, "h", d.kind, words(draw, 8), d.body)
    made = triples([*docstrings, same_query, same_body, d])
    assert made == triples(docstrings)
    texts = [x for t in made for x in (t.query, t.positive)]
    assert len(texts) == len(set(texts))


def test_near_copies_give_one_triple(docstrings):
    d = docstrings[3]
    copy = Docstring(d.package, d.module, "g", d.kind, d.summary + " again", d.body + " indeed")
    assert triples([*docstrings, copy]) == triples(docstrings)


@pytest.mark.parametrize(
    ("summary", "body"),
    [
        ("x" * (SUMMARY_CHARS[0] - 1), "b" * 200),
        ("x" * (SUMMARY_CHARS[1] + 1), "b" * 200),
        ("x" * 30, "b" * BODY_CHARS),
    ],
)
def test_what_is_too_short_or_too_long_makes_no_triple(summary, body):
    assert triples([Docstring("aa", "aa.m", "f", "function", summary, body)]) == []


def test_two_readings_give_the_same_triples(docstrings):
    assert fingerprint(triples(docstrings)) == fingerprint(triples(list(docstrings)))


def test_the_fingerprint_moves_with_every_field(docstrings):
    made = triples(docstrings[5:8])
    marks = {fingerprint(made), fingerprint(made[::-1]), fingerprint(made[:-1])}
    for field in ("query", "positive", "source", "instruction"):
        marks.add(fingerprint([made[0].__class__(**{**vars(made[0]), field: "other"}), *made[1:]]))
    assert len(marks) == 7
