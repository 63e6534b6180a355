"""Designs -> their factors -> the complete crossings over which effects can be told apart."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import Literal

import pandas as pd

from analysis.manifests.designs import Design
from analysis.names import listed

READING = "reading"  # the pooler together with its own settings: how the hidden states are read
SEARCHED = 20_000  # choices of levels that are looked at; beyond them only a crossing of all levels is found
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
        rows[label] = {**of_design, "training": training} if known else {}
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    return pd.DataFrame([[row.get(name, "") for name in names] for row in rows.values()], list(rows), names)


def crossings(factors: pd.DataFrame) -> tuple[list[Crossing], list[str]]:
    """Return the complete crossings, at most two, and the notes on what they leave out.

    First the one with the most factors; then, where it holds more designs, the one with the most designs, in which the
    pooler and its own settings are one factor, `reading` (eos has no setting that it could be crossed with).
    factors: designs x factors in config order, as `factor_table` returns them.
    """
    known = varying(factors)
    if known.shape[1] == 0:
        return [], []
    alike, names = known[known.duplicated(keep=False)], ", ".join(known.columns)
    if len(alike):
        return [], [f"No factorial effects: {listed(list(alike.index), 4)} do not differ in {names}."]
    narrow, wide = _crossing(known, "factors"), _crossing(with_readings(known), "designs")
    complete = [crossing for crossing in (narrow, wide) if crossing]
    if narrow and wide:
        if set(wide.designs) <= set(narrow.designs):
            complete = [narrow]
        elif set(narrow.designs) <= set(wide.designs) and len(narrow.levels) <= len(wide.levels):
            complete = [wide]
    if not complete:
        return [], [f"No factorial effects: no two of {names} are fully crossed by the designs."]
    return complete, [note for crossing in complete for note in _left_out(crossing, factors)]


def varying(factors: pd.DataFrame) -> pd.DataFrame:
    """Return the factors that have two levels or more, for the designs that have any factor."""
    known = factors[(factors != "").any(axis=1)]
    return known[[name for name in known.columns if len(set(known[name]) - {""}) > 1]]


def with_readings(factors: pd.DataFrame) -> pd.DataFrame:
    """Return the factors with `pooler` and every `pooler.<setting>` joined into `reading`: lastlayer/last."""
    parts = [name for name in factors.columns if name == "pooler" or name.startswith("pooler.")]
    if len(parts) < 2:
        return factors
    texts = ["/".join(filter(None, row)) for row in factors[parts].itertuples(index=False, name=None)]
    merged = factors.drop(columns=parts)
    merged.insert(0, READING, texts)
    return merged


def _crossing(table: pd.DataFrame, prefer: Literal["factors", "designs"]) -> Crossing | None:
    levels = complete_grid(table, prefer)
    if levels is None:
        return None
    label = dict(zip(table.itertuples(index=False, name=None), table.index, strict=True))
    several = {name: kept for name, kept in levels.items() if len(kept) > 1}
    fixed = {name: kept[0] for name, kept in levels.items() if len(kept) == 1 and kept[0]}
    return Crossing(several, fixed, [str(label[cell]) for cell in product(*levels.values())])


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


def complete_grid(table: pd.DataFrame, prefer: Literal["factors", "designs"]) -> Levels | None:
    """Return factor -> levels of the largest complete crossing, None where no two factors are crossed.

    table: designs x factors, texts, no two rows alike; "" where a factor does not apply, which is no level beside
    others. A factor that keeps one level is held fixed there. `prefer`: first as many factors with two levels or more
    as possible and then as many designs, or the other way round; of equals the one with the levels that come first.
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
            if last and _crossed(levels) >= 2 and (best is None or _size(levels, prefer) > _size(best, prefer)):
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


def _size(levels: Levels, prefer: str) -> tuple[int, int]:
    size = (_crossed(levels), prod(map(len, levels.values())))
    return size if prefer == "factors" else size[::-1]
