"""Scores are kept between -1 and 1; a source in percent is divided by 100, and a note says so."""

from collections import defaultdict
from dataclasses import replace

from analysis.reading.rows import Reading, Row
from records.errors import UserError

PERCENT_FROM = 1.5  # no score in 0-1 exceeds it, and a whole table in percent never stays below


def normalise(reading: Reading, scale: str) -> Reading:
    """Return the reading with its scores between -1 and 1 (correlations may be negative).

    `scale`: "1" or "100" says what the source is in; "auto" recognises it by its largest score.
    Raises UserError for a score outside the scale, or a model or task that seems to be on the other one.
    """
    usable = [row for row in reading.rows if not row.problem]
    top = max((abs(row.score) for row in usable), default=0.0)
    percent = scale == "100" or (scale == "auto" and top > PERCENT_FROM)
    limit = 100.0 if percent else 1.0
    outside = next((row for row in usable if abs(row.score) > limit), None)
    if outside:
        raise UserError(
            f"{outside.source}: the score of {outside.task} for {outside.model} is {outside.score:g}, outside"
            f" {-limit:g} to {limit:g}. Mend it, or say the scale with scale=1 or scale=100."
        )
    if not percent:
        ours = all(design.runs for design in reading.designs.values())  # our own evaluation writes 0-1
        said = [] if ours or scale != "auto" else [f"{reading.source}: scores were read as 0-1 (largest {top:g})."]
        return replace(reading, notes=[*reading.notes, *said])
    if scale == "auto":
        _refuse_mixed(usable)
    rows = [replace(row, score=row.score / 100.0) for row in reading.rows]
    note = f"{reading.source}: scores are 0-100 (largest {top:g}) and were divided by 100."
    return replace(reading, rows=rows, notes=[*reading.notes, note])


def _refuse_mixed(usable: list[Row]) -> None:
    """A model or a task with several scores, none above 1, in a table of percent is most likely on the other scale."""
    for what in ("model", "task"):
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in usable:
            groups[getattr(row, what)].append(row)
        for name, rows in groups.items():
            if len(rows) > 1 and all(abs(row.score) <= 1.0 for row in rows):
                top = max(usable, key=lambda row: abs(row.score))
                raise UserError(
                    f"{top.source}: the score of {top.task} for {top.model} is {top.score:g}, so scores should be"
                    f" 0-100, but all {len(rows)} of {what} {name} lie within 1: the scales are mixed. Mend the one or"
                    " the others, or say scale=1 or scale=100."
                )
