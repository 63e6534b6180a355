"""`split=`, `subsets=` and `revision=` among scores that are no mteb results: by columns of a csv, or of no effect."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from analysis.manifests.designs import Row, ScoreSource
from analysis.names import listed
from analysis.settings import Settings
from cli.errors import UserError

COLUMNS = ("split", "subsets")  # of a csv; a revision it has none of


def keep_parts(source: ScoreSource, settings: Settings) -> ScoreSource:
    """Return the source with the scores of `split=` and `subsets=` alone; what a design then lacks is a hole.

    A word that nothing here can be chosen by is `idle`, and a note says so. Raises UserError where no score is left.
    """
    given = [key for key in (*COLUMNS, "revision") if getattr(settings, key)]
    named = [key for key in COLUMNS if key in given and any(getattr(row, key) for row in source.rows)]
    idle = [key for key in given if key not in named]
    notes = [f"{source.name} names no {key}, so {_word(key, settings)} chose nothing there." for key in idle]
    kept = [row for row in source.rows if not _unfit(row, named, settings)]
    if named and not kept:
        have = "; ".join(f"{key} {listed(dict.fromkeys(getattr(row, key) for row in source.rows), 8)}" for key in named)
        words = " and ".join(_word(key, settings) for key in named)
        raise UserError(f"{source.path}: no score is of {words}. It has {have}. Change that, or leave it out.")
    seen, rows = {(row.model, row.seed, row.task) for row in kept}, list(kept)
    for row in source.rows:
        unit = row.model, row.seed, row.task
        if unit not in seen:
            seen.add(unit)
            problem = f"{row.source}: {row.task} of {row.model} has no score of {_unfit(row, named, settings)}"
            rows.append(replace(row, score=math.nan, problem=f"{problem}. Change that, or leave it out.", lacking=True))
    return replace(source, rows=rows, notes=[*source.notes, *notes], idle=frozenset(idle))


def check_effect(sources: Sequence[ScoreSource], settings: Settings) -> None:
    """Raise UserError for a word of which no source has anything to choose by."""
    for key in frozenset.intersection(*(source.idle for source in sources)):
        where = listed([source.name for source in sources], 3)
        column = f", or write the {key} of each score into a column {key} of a long csv" if key in COLUMNS else ""
        raise UserError(f"{_word(key, settings)} has no effect, for {where} names no {key}. Leave it out{column}.")


def _unfit(row: Row, keys: Sequence[str], settings: Settings) -> str:
    """Return the first word of `keys` that a row is not of; "" where there is none."""
    fits = {
        "split": row.split == settings.split,
        "subsets": all(any(fnmatchcase(name, glob) for glob in settings.subsets) for name in row.subsets.split(";")),
    }
    return next((_word(key, settings) for key in keys if not fits[key]), "")


def _word(key: str, settings: Settings) -> str:
    value = getattr(settings, key)
    return f"{key}={value}" if isinstance(value, str) else f"{key}=[{','.join(value)}]"
