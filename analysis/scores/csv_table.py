"""Rows of a csv: long or wide, plain or .gz."""

import csv
import gzip
import math
import re
from pathlib import Path

from analysis.manifests.designs import Design, Row, ScoreSource
from analysis.names import suggest
from analysis.scores.task_types import known_types
from cli.errors import UserError, reading

# Columns of published tables that are no tasks: counts, means, ranks, remarks on the model.
NO_TASK = re.compile(r"(n|mean|avg|average|rank|borda)([ _].*)?$|revision$|parameters$", re.IGNORECASE)
REMEDY = "Save the table as csv in UTF-8, with commas."
EMPTY = "leave the cell empty where there is no score"
LONG = ("model", "task", "score", "type", "seed", "split", "subsets", "training")  # with a meaning, so never factors
OURS = ["design", "model"]  # begin a scores.csv of this program: a design may be of several models, each with its seeds
TRAINED = {"": True, "after": True, "before": False}
Cells = list[tuple[int, list[str]]]


def read_csv(path: Path, own_types: dict[str, str], factors: tuple[str, ...] = ()) -> ScoreSource:
    """Read a csv: long (columns model, task, score, optionally type, seed, split, subsets, training) or wide (first
    column model, then tasks).

    A column of a long table that is named as one of `factors` says which level of it a model has, empty: that it does
    not apply. `training` is "before" for an untrained reference, "after" or empty for all others. An empty cell of a
    wide table is a gap. `own_types` names tasks that mteb does not know, for the wide form. Raises UserError (file,
    line) for what cannot be read.
    """
    header, lines = _load(path)
    columns = [name.strip() for name in header]
    lower = [name.lower() for name in columns]
    twice = [name for k, name in enumerate(columns) if name in columns[:k]]
    if twice:
        raise UserError(f"{path} has two columns {twice[0]!r}. Remove one of them.")
    if {"model", "task", "score"} <= set(lower):
        return _read_long(path, lower, lines, [name for name in factors if name.lower() not in LONG])
    if "task" in lower:
        raise UserError(f"{path} has a column task but lacks model or score. Its columns: {', '.join(columns)}.")
    return _read_wide(path, columns, lines, own_types)


def _load(path: Path) -> tuple[list[str], Cells]:
    """Return the header and (line number, cells) of every line that is not blank."""
    unpacked = gzip.open if path.suffix == ".gz" else open
    with reading(path, REMEDY), unpacked(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if any(cells)]
    if len(lines) < 2:
        raise UserError(f"{path} holds no scores. It needs a header and at least one line below it.")
    width = len(lines[0][1])
    if width == 1:
        other = next((name for sign, name in ((";", "semicolons"), ("\t", "tabs")) if sign in lines[0][1][0]), "")
        state = f"separated by {other}" if other else "one column only"
        raise UserError(f"{path}: the header is {state}. Separate the columns with commas, and decimals with points.")
    for number, cells in lines:
        if len(cells) != width:
            raise UserError(f"{path}, line {number}: {len(cells)} cells where the header has {width}. Mend the line.")
    return lines[0][1], lines[1:]


def _read_long(path: Path, columns: list[str], lines: Cells, factors: list[str]) -> ScoreSource:
    source = ScoreSource(str(path))
    factors = [name for name in factors if name.lower() in columns]
    named = columns[0] if columns[:2] == OURS else "model"
    for number, line in lines:
        cells, where = dict(zip(columns, line, strict=True)), f"{path}, line {number}"
        model, task = cells[named], cells["task"]
        if not model or not task:
            raise UserError(f"{where}: {named} or task is empty. Fill it in, or remove the line.")
        stage = cells.get("training", "")
        if stage not in TRAINED:
            raise UserError(
                f"{where}: training is {stage!r}. Write before (of an untrained reference) or after, or"
                " give the column another name."
            )
        levels = {name: cells[name.lower()] for name in factors}
        design = source.designs.setdefault(model, Design(model=model, trained=TRAINED[stage], factors=levels))
        if design.trained != TRAINED[stage]:
            raise UserError(f"{where}: {model} stands above with another training. Give each its own name.")
        known = design.factors
        for name in (name for name in factors if levels[name] != known[name]):
            raise UserError(
                f"{where}: {name} of {model} is {levels[name]!r}, and {known[name]!r} above. Mend the one or the other,"
                " or give each its own name in the column model."
            )
        score = _number(cells["score"], where, task, "remove the line")
        seed, kind, split, subsets = (cells.get(key, "") for key in ("seed", "type", "split", "subsets"))
        source.rows.append(Row(model, seed, task, score, where, kind, split, subsets))
    return source


def _read_wide(path: Path, columns: list[str], lines: Cells, own_types: dict[str, str]) -> ScoreSource:
    if columns[0] in own_types or columns[0] in known_types():
        raise UserError(f"{path}: the first column is the task {columns[0]}. Put a column with the models before it.")
    tasks = [k for k, name in enumerate(columns) if k and (name in own_types or name in known_types())]
    others = [name for k, name in enumerate(columns) if k and k not in tasks]
    unknown = next((name for name in others if not NO_TASK.match(name)), None)
    if unknown is not None:
        raise UserError(
            f"{path}: column {unknown!r} is no task that is known. {suggest(unknown, known_types())} "
            'For a task of your own give task_types=<file> with {"<task>": {"type": "Retrieval"}}.'
        )
    if not tasks:
        raise UserError(f"{path} has no task columns. Long form: model, task, score. Wide form: model, then tasks.")
    source = ScoreSource(str(path))
    if others:
        source.notes.append(f"{path.name}: columns that are no task were left out: {', '.join(others)}.")
    for number, cells in lines:
        model, where = cells[0], f"{path}, line {number}"
        if not model:
            raise UserError(f"{where}: the model has no name. Fill it in, or remove the line.")
        if model in source.designs:
            raise UserError(f"{where}: model {model!r} is there twice. Remove one line.")
        source.designs[model] = Design(model=model)
        filled = [(columns[k], cells[k]) for k in tasks if cells[k]]
        source.rows += [Row(model, "", task, _number(text, where, task, EMPTY), where) for task, text in filled]
    return source


def _number(text: str, where: str, task: str, mend: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: the score of {task} is {text!r}, not a number. Mend it, or {mend}.")
    return value
