"""Designs -> their factors -> the complete crossing over which effects can be estimated."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import pandas as pd

from analysis.manifests.designs import Design
from analysis.names import listed

SEARCHED = 20_000  # choices of levels that are tried; beyond them only a crossing of all levels is found
Levels = dict[str, list[str]]


@dataclass(frozen=True)
class Crossing:
    """`designs`: one per cell, cells as in `itertools.product(*levels.values())`."""

    levels: Levels  # factor -> two levels or more
    fixed: dict[str, str]  # factor -> the one level kept of several
    designs: list[str]

    @property
    def name(self) -> str:
        """The crossing as a line of text: pooler (2) x attn (2)."""
        return " x ".join(f"{factor} ({len(levels)})" for factor, levels in self.levels.items())


def factor_table(designs: Mapping[str, Design]) -> pd.DataFrame:
    """Return designs x factors, texts; "" where a factor does not apply, a row of "" where none is known."""
    rows = {}
    for label, design in designs.items():
        of_design = dict(getattr(design, "factors", None) or {"pooler": design.pooler, "attn": design.attn})
        known, training = any(of_design.values()), "after" if design.trained else "before"
        rows[label] = {**of_design, "training": of_design.get("training", training)} if known else {}
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    return pd.DataFrame([[row.get(name, "") for name in names] for row in rows.values()], list(rows), names)


def crossing_of(factors: pd.DataFrame) -> tuple[Crossing | None, list[str]]:
    """Return the complete crossing with the most factors, of equals that with the most designs; None where there is
    none; and the notes on what it leaves out.

    factors: designs x factors in config order, as `factor_table` returns them.
    """
    known = varying(factors)
    if known.shape[1] == 0:
        return None, []
    alike, names = known[known.duplicated(keep=False)], ", ".join(known.columns)
    if len(alike):
        return None, [f"No factorial effects: {listed(list(alike.index), 4)} do not differ in {names}."]
    levels = complete_grid(known)
    if levels is None:
        return None, [f"No factorial effects: no two of {names} are fully crossed by the designs."]
    label = dict(zip(known.itertuples(index=False, name=None), known.index, strict=True))
    several = {name: kept for name, kept in levels.items() if len(kept) > 1}
    fixed = {name: kept[0] for name, kept in levels.items() if len(kept) == 1 and kept[0]}
    crossing = Crossing(several, fixed, [str(label[cell]) for cell in product(*levels.values())])
    return crossing, _left_out(crossing, factors)


def varying(factors: pd.DataFrame) -> pd.DataFrame:
    """Return the factors that have two levels or more, for the designs that have any factor."""
    known = factors[(factors != "").any(axis=1)]
    return known[[name for name in known.columns if len(set(known[name]) - {""}) > 1]]


def _left_out(crossing: Crossing, factors: pd.DataFrame) -> list[str]:
    gone = [str(label) for label in factors.index if label not in set(crossing.designs)]
    if not gone:
        return []
    kept = "; ".join(f"{name}: {', '.join(levels)}" for name, levels in crossing.levels.items())
    fixed = f" at {', '.join(f'{name} {level}' for name, level in crossing.fixed.items())}" if crossing.fixed else ""
    return [
        f"The designs are no complete crossing. Effects of {crossing.name}{fixed} are over {len(crossing.designs)} of"
        f" {len(factors)} designs ({kept}), the largest complete one; left out: {listed(gone)}."
    ]


def complete_grid(table: pd.DataFrame) -> Levels | None:
    """Return factor -> levels of the largest complete crossing, None where no two factors are crossed.

    table: designs x factors, texts, no two rows alike; "" where a factor does not apply, which is no level beside
    others. A factor that keeps one level is held fixed there. As many factors with two levels or more as possible, then
    as many designs; of equals the one with the levels that come first.
    """
    every = {name: list(dict.fromkeys(table[name])) for name in table.columns}
    apply = not any("" in levels and len(levels) > 1 for levels in every.values())
    if prod(map(len, every.values())) == len(table) and _crossed(every) >= 2 and apply:
        return every
    names = sorted(every, key=lambda name: len(every[name]))  # the longest last: its levels follow from the others
    if not names or prod(2 ** len(every[name]) - 1 for name in names[:-1]) > SEARCHED:
        return None
    cells = set(table[names].itertuples(index=False, name=None))
    best: Levels | None = None
    for chosen in product(*(_subsets(every[name]) for name in names[:-1])):
        inner = list(product(*chosen))
        full = [level for level in every[names[-1]] if all((*cell, level) in cells for cell in inner)]
        for last in ([level for level in full if level], [level for level in full if not level]):
            levels = dict(zip(names, [*map(list, chosen), last], strict=True))
            if last and _crossed(levels) >= 2 and (best is None or _size(levels) > _size(best)):
                best = levels
    return best and {name: best[name] for name in every}


def _subsets(levels: list[str]) -> Iterator[tuple[str, ...]]:
    """Every choice of levels, the larger and the earlier first; "" only alone."""
    real = [level for level in levels if level]
    for size in range(len(real), 0, -1):
        yield from combinations(real, size)
    if "" in levels:
        yield ("",)


def _crossed(levels: Levels) -> int:
    return sum(len(kept) > 1 for kept in levels.values())


def _size(levels: Levels) -> tuple[int, int]:
    return _crossed(levels), prod(map(len, levels.values()))
