"""`seeds=`: the scores of some seeds alone, such as those of a study whose further seeds are not finished."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.names import listed
from analysis.reading.rows import Reading
from records.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def keep_seeds(reading: Reading, wanted: tuple[str, ...]) -> Reading:
    """Return the reading with the rows of the seeds `wanted` alone and the designs that have any; () keeps all."""
    if not wanted:
        return reading
    rows = [row for row in reading.rows if row.seed in wanted]
    models = {row.model for row in rows}
    designs = {model: design for model, design in reading.designs.items() if model in models}
    other = reading.other_seeds | {row.seed for row in reading.rows if row.seed not in wanted}
    return replace(reading, rows=rows, designs=designs, other_seeds=other)


def check_seeds(readings: Iterable[Reading], wanted: tuple[str, ...]) -> None:
    """Raise UserError for a seed of `wanted` that no score has; it names the seeds that are there."""
    readings = list(readings)
    found = {row.seed for reading in readings for row in reading.rows}
    absent = [seed for seed in wanted if seed not in found]
    if absent:
        there = found.union(*(reading.other_seeds for reading in readings)) - {""}
        held = f"have {listed(sorted(there, key=lambda s: (len(s), s)))}" if there else "name no seeds"
        raise UserError(f"seeds= names {listed(absent)}, which no score has. The scores {held}.")


def check_every_seed(frame: "pd.DataFrame", designs: list[str], wanted: tuple[str, ...]) -> None:
    """Raise UserError where a design compared lacks a seed of `wanted`. frame: the long table."""
    have = {design: set(rows) for design, rows in frame.groupby("design")["seed"]}
    lacking = {design: [seed for seed in wanted if seed not in have[design]] for design in designs}
    lines = [f"{design} lacks seed {', '.join(absent)}" for design, absent in lacking.items() if absent]
    if lines:
        raise UserError(f"{listed(lines, 4)}. Train and score it, or leave the seed out of seeds=.")
