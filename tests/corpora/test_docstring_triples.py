"""Triples from docstrings: who is whose negative, that nothing occurs twice, and that chance plays no part."""

import random
from collections import Counter

import pytest

from corpora.docstring_pairs import docstring_triples, graded_triples, usable
from corpora.docstrings import Docstring
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
    assert len({t.negatives for t in made if module[t.positive] == "aa.m5"}) == 6, "each is the negative of one other"
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


@pytest.mark.parametrize(("summary", "body"), [(19, 200), (401, 200), (30, 80)])
def test_what_is_too_short_or_too_long_makes_no_triple(summary, body):
    assert triples([Docstring("aa", "aa.m", "f", "function", "x" * summary, "b" * body)]) == []


def test_the_fingerprint_moves_with_every_field(docstrings):
    made = triples(docstrings[5:8])
    marks = {fingerprint(made), fingerprint(made[::-1]), fingerprint(made[:-1])}
    for field in ("query", "positive", "source", "instruction"):
        marks.add(fingerprint([made[0].__class__(**{**vars(made[0]), field: "other"}), *made[1:]]))
    assert len(marks) == 7


MODULES = {  # of a docstring of each the grades that a summary of it has neighbours for
    "aa.x.one": 3,
    "aa.x.two": 2,
    "aa.y.one": 2,
    "aa.y.two": 1,  # no other of its module
    "aa.z.one": 2,  # no other module of its subpackage
    "bb.x.one": 2,  # no other subpackage
    "bb.x.two": 2,
}
LEFT = ("aa.x.one", "aa.x.two", "aa.y.one")


def made() -> list[tuple[Docstring, str, str]]:
    """Docstrings with module and subpackage, which is two levels."""
    draw = random.Random(0)
    return [
        (Docstring(module[:2], module, f"f{i}", "function", words(draw, 8), words(draw, 30)), module, module[:4])
        for module, count in MODULES.items()
        for i in range(count)
    ]


def test_a_grade_says_where_the_body_stands():
    rows = made()
    docstrings = [d for d, _, _ in rows]
    of_summary, of_body = ({getattr(d, side): d for d in docstrings} for side in ("summary", "body"))
    found = graded_triples(rows)
    for t in found:
        one, other = of_summary[t.query], of_body[t.positive]
        assert one.package == other.package
        same_module, same_subpackage = one.module == other.module, one.module[:4] == other.module[:4]
        assert t.grade == same_subpackage + same_module + (one is other)
        assert (t.source, t.kind, t.negatives) == (one.package, "graded", ())
    assert [t.grade for t in found] == sorted((t.grade for t in found), reverse=True)
    grades = Counter((t.query, t.grade) for t in found)
    assert set(grades.values()) == {1}
    whole = [d.summary for d in docstrings if d.module in LEFT]
    assert sorted(grades) == sorted((summary, float(g)) for summary in whole for g in range(4))
