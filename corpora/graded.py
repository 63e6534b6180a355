"""Graded pairs of docstrings: a summary and a body, graded by how near they stand to each other. Nobody judged one."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence

from corpora.docstrings import Docstring
from corpora.triples import Triple

Placed = tuple[Docstring, str, str]  # a docstring, its module, its subpackage


def graded_triples(placed: Sequence[Placed]) -> list[Triple]:
    """Return for each docstring four pairs of its summary: with its own body, grade 3; with that of another docstring
    of its module, 2; of another module of its subpackage, 1; of another subpackage of its package, 0. First all of
    grade 3, then of 2, and so on: what is held out, every so many pairs, has all grades.

    These are the grades of the docs benchmark's STS (docs/decisions/docs-tasks.md). A docstring without a neighbour of
    each grade is left out, so that no grade has summaries of its own. Of several neighbours the next one in the order
    of the texts' sha256 is taken, cyclically: chance plays no part.
    """
    order = sorted(placed, key=lambda p: hashlib.sha256(p[0].text.encode()).hexdigest())
    groups: dict[tuple[str, ...], list[Placed]] = defaultdict(list)
    place: dict[tuple[Placed, int], int] = {}
    for p in order:
        for width, key in enumerate(_keys(p)):
            place[p, width] = len(groups[key])
            groups[key].append(p)

    def after(p: Placed, width: int) -> Iterator[Placed]:
        group = groups[_keys(p)[width]]
        return (group[(place[p, width] + k) % len(group)] for k in range(1, len(group)))

    by_grade: list[list[Triple]] = [[], [], [], []]
    for p in placed:
        d, module, label = p
        near = (
            next(after(p, 2), None),
            next((q for q in after(p, 1) if q[1] != module), None),
            next((q for q in after(p, 0) if q[2] != label), None),
        )
        if None not in near:
            bodies = [d.body, *(q[0].body for q in near if q)]
            for k, body in enumerate(bodies):
                by_grade[k].append(Triple(d.summary, body, (), d.package, grade=3.0 - k))
    return [t for of_grade in by_grade for t in of_grade]


def _keys(p: Placed) -> list[tuple[str, ...]]:
    """Package, subpackage and module of a docstring."""
    d, module, label = p
    return [(d.package,), (d.package, label), (d.package, label, module)]
