"""Graded pairs of docstrings: each grade against the modules that the two texts stand in."""

import random
from collections import Counter

from corpora.docstring_pairs import graded_triples
from corpora.docstrings import Docstring

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

    def text(count):
        return " ".join(f"w{draw.randrange(5000)}" for _ in range(count))

    return [
        (Docstring(module[:2], module, f"f{i}", "function", text(8), text(30)), module, module[:4])
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


def test_the_order_of_docstrings_chooses_nothing():
    rows = made()
    assert sorted(map(str, graded_triples(rows[::-1]))) == sorted(map(str, graded_triples(rows)))
