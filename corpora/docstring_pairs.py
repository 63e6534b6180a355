"""The default training data: docstrings of the pinned dependencies, without any text of the held-out packages."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cli.errors import UserError
from corpora.cleaning import CLEANING_VERSION
from corpora.copies import NearCopies, distinct
from corpora.docstrings import STDLIB, Docstring, package_sources, read_docstrings, read_lines, subpackages, write_lines
from corpora.triples import Triple
from records.files import alone_in, of_value

TEXT_COPY = 0.8  # raw text: drop what is almost the same
SELECTION_VERSION = 3  # raise when the choice of texts changes: it is cached
PAIR_COPY = 0.5  # pairs: a batch must not hold two answers to one question
Config = dict[str, Any]
T = TypeVar("T")
Placed = tuple[Docstring, str, str]  # a docstring, its module, its subpackage


def docstrings(data: Config, cache_dir: str) -> list[Triple]:
    """`data=docstrings`: summary, rest, and the rest of another docstring of the same module."""
    return docstring_triples(training_pairs(data, cache_dir))


def docstring_graded(data: Config, cache_dir: str) -> list[Triple]:
    """`data=docstring_graded`: a summary and a body, graded by how near their docstrings stand."""
    return graded_triples(placed(training_pairs(data, cache_dir)))


def training_pairs(data: Config, cache_dir: str) -> list[Docstring]:
    """Return `usable` of the training side, cached: the search for near-copies takes longer than all else here."""
    return _kept("pairs", data, cache_dir, lambda: usable(training_side(data, cache_dir)))


def training_side(data: Config, cache_dir: str) -> list[Docstring]:
    """Return the docstrings of `data.packages` that nearly copy neither one another nor any docstring held out.
    Held out are those of `data.held_out` and of `data.development`. Order: package, path, line.
    Raises `UserError` for a package on both sides."""
    held_out = [*data["held_out"], *data["development"]]
    if both := sorted(set(data["packages"]) & set(held_out)):
        raise UserError(f"data.packages and data.held_out both name {', '.join(both)}. Leave each in one.")
    every = [*data["packages"], *held_out]
    return _kept("training", data, cache_dir, lambda: _without_copies(read_docstrings(every, cache_dir), held_out))


def _kept(kind: str, data: Config, cache_dir: str, choose: Callable[[], list[Docstring]]) -> list[Docstring]:
    """What `choose` returns, kept by the versions and sources of all packages."""
    sources = package_sources([*data["packages"], *data["held_out"], *data["development"]])
    key = of_value([sources, data["packages"], CLEANING_VERSION, SELECTION_VERSION, TEXT_COPY, PAIR_COPY])[:12]
    path = Path(cache_dir, "docstrings", f"{kind}-{key}.jsonl")
    if not path.exists():
        with alone_in(Path(cache_dir, "docstrings", kind), wait=True):  # runs that begin together choose once
            if not path.exists():
                write_lines(path, map(vars, choose()))
    return [Docstring(**values) for values in read_lines(path)]


def _without_copies(every: list[Docstring], held_out: Sequence[str]) -> list[Docstring]:
    """Return those of other packages than `held_out` that copy neither one another nor any docstring of these."""
    forbidden, apart = NearCopies(PAIR_COPY), [d for d in every if d.package in held_out]
    exact = dict.fromkeys(part for d in apart for part in (d.text, d.summary, d.body))  # a copied part is a leak too
    for part in exact:
        forbidden.keep(part)

    def leaks(d: Docstring) -> bool:
        parts = dict.fromkeys(part for part in (d.summary, d.body, d.text) if part)  # without a body two are the same
        return not exact.keys().isdisjoint(parts) or any(part in forbidden for part in parts)

    kept, index = list[Docstring](), NearCopies(TEXT_COPY)
    for d in every:
        if d.package not in held_out and not leaks(d) and d.text not in index:  # leaks made its hashes last
            index.keep(d.text)
            kept.append(d)
    return kept


def placed(kept: Sequence[Docstring]) -> list[Placed]:
    """Return each docstring, of those that `usable` returns, with its module and subpackage. Of the standard library,
    which is one package here, a top-level module counts as a subpackage: "stdlib.json"."""
    place = [f"{STDLIB}.{d.module}" if d.package == STDLIB else d.module for d in kept]
    labels: dict[str, str] = {}
    for package in {d.package for d in kept}:
        labels |= subpackages([m for d, m in zip(kept, place, strict=True) if d.package == package])
    return [(d, module, labels[module]) for d, module in zip(kept, place, strict=True)]


def usable(docstrings: Sequence[Docstring]) -> list[Docstring]:
    """Return the docstrings that give pairs, without near-copies; a summary or rest occurs once."""
    pairs = [d for d in docstrings if d.is_pair]
    seen: set[str] = set()
    kept: list[Docstring] = []
    for d in (pairs[i] for i in distinct([d.text for d in pairs], threshold=PAIR_COPY)):
        if seen.isdisjoint((d.summary, d.body)):
            seen.update((d.summary, d.body))
            kept.append(d)
    return kept


def docstring_triples(kept: Sequence[Docstring]) -> list[Triple]:
    """Return (summary, rest, rest of another docstring of the same module) for each of those that `usable` returns.
    The negative is the next of them in the module, cyclically (of the package, where the module has but one):
    a choice that depends on nothing but the text."""
    in_module, in_package = following(kept, lambda d: d.module), following(kept, lambda d: d.package)
    triples = []
    for d in kept:
        other = next(in_module(d), None) or next(in_package(d), None)
        triples.append(Triple(d.summary, d.body, (other.body,) if other else (), source=d.package))
    return triples


def graded_triples(placed: Sequence[Placed]) -> list[Triple]:
    """Return for each docstring four pairs of its summary, graded by how near the other text stands; nobody judged one.

    With its own body, grade 3; with that of another docstring of its module, 2; of another module of its subpackage,
    1; of another subpackage of its package, 0. First all of grade 3, then of 2, and so on: what is held out, every so
    many pairs, has all grades. A docstring without a neighbour of each grade is left out, so that no grade has
    summaries of its own. Of several neighbours the next in the order of the texts' sha256 is taken, cyclically.
    """
    order = sorted(placed, key=lambda p: hashlib.sha256(p[0].text.encode()).hexdigest())
    in_package = following(order, lambda p: p[0].package)
    in_subpackage = following(order, lambda p: (p[0].package, p[2]))
    in_module = following(order, lambda p: (p[0].package, p[2], p[1]))
    by_grade: list[list[Triple]] = [[], [], [], []]
    for p in placed:
        d, module, label = p
        near = (
            next(in_module(p), None),
            next((q for q in in_subpackage(p) if q[1] != module), None),
            next((q for q in in_package(p) if q[2] != label), None),
        )
        if None not in near:
            for k, body in enumerate([d.body, *(q[0].body for q in near if q)]):
                by_grade[k].append(Triple(d.summary, body, (), d.package, grade=3.0 - k))
    return [t for of_grade in by_grade for t in of_grade]


def following(items: Iterable[T], group_of: Callable[[T], Any]) -> Callable[[T], Iterator[T]]:
    """Return a function: item -> the other items of its group, from the one after it on, cyclically."""
    groups: dict[Any, list[T]] = defaultdict(list)
    place: dict[T, int] = {}
    for item in items:
        place[item] = len(groups[group_of(item)])
        groups[group_of(item)].append(item)

    def after(item: T) -> Iterator[T]:
        group = groups[group_of(item)]
        return (group[(place[item] + k) % len(group)] for k in range(1, len(group)))

    return after
