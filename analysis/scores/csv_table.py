"""Scores of a csv: long or wide, plain or .gz."""

import math
import re
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.manifests.designs import Design
from analysis.names import suggest
from analysis.scores.source import Source, table
from analysis.scores.tasks import known_types
from cli.errors import UserError, reading

# Columns of published tables that are no tasks: counts, means, ranks, remarks on the model.
NO_TASK = re.compile(r"(n|mean|avg|average|rank|borda)([ _].*)?$|revision$|parameters$", re.IGNORECASE)
REMEDY = "Save the table as csv in UTF-8, with commas, and decimals with points."
LONG = ("model", "task", "score", "type", "seed", "split", "subsets", "training")  # with a meaning, so never factors
OURS = ["design", "model"]  # begin a scores.csv of this program, where a model has the name of its design
BEFORE = "before"  # `training` of an untrained reference


def read_csv(path: Path, own_types: dict[str, str], factors: tuple[str, ...] = ()) -> Source:
    """Read a csv: long (columns model, task, score, optionally type, seed, split, subsets, training) or wide (first
    column model, then tasks).

    A column of a long table that is named as one of `factors` says which level of it a model has, empty: that it does
    not apply. `training` is "before" for an untrained reference. An empty cell of a wide table is a gap. `own_types`
    names tasks that mteb does not know, for the wide form. Raises UserError (file, line) for what cannot be read.
    """
    cells = _load(path)
    lower = cells.rename(columns=str.lower)
    if {"model", "task", "score"} <= set(lower):
        return _long(path, lower, [name for name in factors if name.lower() in lower and name.lower() not in LONG])
    if "task" in lower:
        raise UserError(f"{path} has a column task but lacks model or score. Its columns: {', '.join(cells)}.")
    return _wide(path, cells, own_types)


def _load(path: Path) -> pd.DataFrame:
    """Return the cells as text, with a column `source`: file and line."""
    with reading(path, REMEDY), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # of lines with more cells than the header
        cells = pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False, skip_blank_lines=False
        )
    lines = cells.index + 2
    cells = cells.set_axis(cells.columns.str.strip(), axis=1).apply(lambda column: column.str.strip())
    kept = cells.ne("").any(axis=1)
    if not kept.any() or cells.shape[1] < 2:
        raise UserError(f"{path} holds no table of scores. It needs a header and lines with commas. {REMEDY}")
    return cells.assign(source=[f"{path}, line {line}" for line in lines])[kept]


def _long(path: Path, cells: pd.DataFrame, factors: list[str]) -> Source:
    if list(cells.columns[:2]) == OURS:
        cells = cells.assign(model=cells["design"])
    nameless = cells[(cells["model"] == "") | (cells["task"] == "")]
    if len(nameless):
        raise UserError(f"{nameless['source'].iloc[0]}: model or task is empty. Fill it in, or remove the line.")
    cells = cells if "training" in cells else cells.assign(training="")
    odd = cells[~cells["training"].isin(("", "after", BEFORE))]
    if len(odd):
        mend = f"Write {BEFORE} (of an untrained reference) or after, or give the column another name."
        raise UserError(f"{odd['source'].iloc[0]}: training is {odd['training'].iloc[0]!r}. {mend}")
    columns = [*(name.lower() for name in factors), "training"]
    designs = {}
    for model, rows in cells.groupby("model", sort=False):
        other = rows[rows[columns].ne(rows[columns].iloc[0]).any(axis=1)]
        if len(other):
            mend = "Mend it, or give each its own name in the column model."
            raise UserError(f"{other['source'].iloc[0]}: {model} has another {' or '.join(columns)} than above. {mend}")
        first: dict[str, str] = rows.iloc[0].to_dict()
        levels = {name: first[name.lower()] for name in factors}
        designs[str(model)] = Design(str(model), trained=first["training"] != BEFORE, factors=levels)
    scores = _numbers(cells["score"], cells["task"], cells["source"], "remove the line")
    known = cells[[name for name in cells if name in (*LONG, "source")]]
    return Source(path, table(known.assign(score=scores)), designs)


def _wide(path: Path, cells: pd.DataFrame, own_types: dict[str, str]) -> Source:
    named, *columns = (name for name in cells if name != "source")
    known = known_types() | own_types
    if named in known:
        raise UserError(f"{path}: the first column is the task {named}. Put a column with the models before it.")
    tasks = [name for name in columns if name in known]
    others = [name for name in columns if name not in known]
    unknown = next((name for name in others if not NO_TASK.match(name)), None)
    if unknown is not None or not tasks:
        raise UserError(
            f"{path}: column {unknown or named!r} is no task that is known. {suggest(unknown or named, known)} Long"
            ' form: model, task, score. For a task of your own give task_types=<file> with {"<task>": "Retrieval"}.'
        )
    models = cells[named]
    odd = cells[models.duplicated() | (models == "")]
    if len(odd):
        row = odd.iloc[0]
        raise UserError(f"{row['source']}: model {row[named]!r} is there twice, or has no name. Mend the line.")
    long = cells.set_index([named, "source"])[tasks].rename_axis(columns="task").stack().rename("score").reset_index()
    long = long[long["score"] != ""].rename(columns={named: "model"})
    scores = _numbers(long["score"], long["task"], long["source"], "leave the cell empty where there is no score")
    note = f"{path.name}: columns that are no task were left out: {', '.join(others)}."
    designs = {model: Design(model) for model in models}
    return Source(path, table(long.assign(score=scores)), designs, notes=(note,) if others else ())


def _numbers(texts: pd.Series, tasks: pd.Series, sources: pd.Series, mend: str) -> Any:
    """Return the scores. Raises UserError for the first that is no finite number."""
    numbers = texts.map(_number)
    wrong = numbers.isna()
    if wrong.any():
        what = f"the score of {tasks[wrong].iloc[0]} is {texts[wrong].iloc[0]!r}, not a number"
        raise UserError(f"{sources[wrong].iloc[0]}: {what}. Mend it, or {mend}.")
    return numbers


def _number(text: str) -> float:
    """Return the number; NaN where there is no finite one. Python reads every digit, pandas does not."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
