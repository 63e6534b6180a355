"""Scores of a csv: long or wide, plain or .gz."""

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.manifests.designs import UNTRAINED, Design
from analysis.names import suggest
from analysis.scores.long_table import Source, table
from analysis.scores.tasks import known_types, read_types
from cli.errors import UserError, reading

# Columns of published tables that are no tasks: counts, means, ranks, remarks on the model.
NO_TASK = re.compile(r"(n|mean|avg|average|rank|borda)([ _].*)?$|revision$|parameters$", re.IGNORECASE)
REMEDY = "Save the table as csv in UTF-8, with commas, and decimals with points."
LONG = ("model", "task", "score", "type", "seed", "split", "subsets", "manifest")  # with a meaning, so never factors
OURS = ["design", "model"]  # begin a scores.csv of this program, where a model has the name of its design
MISSING = ("", "nan", "na", "n/a", "none", "null", "-")  # cells without a score


def read_csv(path: Path, factors: tuple[str, ...] = ()) -> Source:
    """Read a csv: long (columns model, task, score, optionally type, seed, split, subsets) or wide (first column model,
    then tasks).

    A column of a long table that is named as one of `factors` says which level of it a model has, empty: that it does
    not apply. A model whose name ends in " (untrained)" is a reference. A cell without a score makes a row with a
    `problem`, an empty one of a wide table none. A tasks.json beside the file names the types of tasks that mteb does
    not know. Raises UserError (file, line) for what cannot be read.
    """
    cells, beside = _cells(path), path.parent / "tasks.json"
    types = read_types(beside) if beside.is_file() else {}
    lower, notes = cells.rename(columns=str.lower), tuple[str, ...]()
    if {"model", "task", "score"} <= set(lower):
        long = lower
        if list(long.columns[:2]) == OURS:
            long = long.assign(model=long["design"])
    elif {"task", "score", "seed"} & set(lower):
        lacking = " and ".join(name for name in ("model", "task", "score") if name not in lower)
        there = ", ".join(name for name in cells if name != "source")
        raise UserError(f"{path} lacks {lacking} among its columns: {there}. Name them so, or add them.")
    else:
        long, notes = _melted(path, cells, known_types() | types)
    nameless = long[(long["model"] == "") | (long["task"] == "")]
    if len(nameless):
        raise UserError(f"{nameless['source'].iloc[0]}: model or task is empty. Fill it in, or remove the line.")
    levels = [name for name in factors if name.lower() in long and name.lower() not in LONG]
    if "seed" in long:
        long = long.assign(seed=long["seed"].map(_seed))
    designs = _designs(long, levels)
    long = long[[name for name in long if name in (*LONG, "source")]]
    return Source(path, table(_scored(long if "task" in lower else long[long["score"] != ""])), designs, types, notes)


def _cells(path: Path) -> pd.DataFrame:
    """Return the cells as text, with a column `source`: file and line."""
    with reading(path, REMEDY), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # of lines with more cells than the header
        cells = pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False, skip_blank_lines=False
        )
    lines = cells.index + 2
    cells = cells.set_axis(cells.columns.str.strip(), axis=1).apply(lambda column: column.str.strip())
    names = cells.columns.str.lower()
    if names.has_duplicates:
        raise UserError(f"{path} has the column {names[names.duplicated()][0]!r} twice. Rename or remove one.")
    cells = cells[[name for name in cells if name.lower() != "source"]]
    kept = cells.ne("").any(axis=1)
    if not kept.any() or cells.shape[1] < 2:
        raise UserError(f"{path} holds no table of scores. It needs a header and lines with commas. {REMEDY}")
    return cells.assign(source=[f"{path}, line {line}" for line in lines])[kept]


def _designs(long: pd.DataFrame, factors: list[str]) -> dict[str, Design]:
    """Return model -> design. Raises UserError for a model on two levels of a factor."""
    columns, designs = [name.lower() for name in factors], {}
    for model, rows in long.groupby("model", sort=False):
        other = rows[rows[columns].ne(rows[columns].iloc[0]).any(axis=1)]
        if len(other):
            mend = "Mend it, or give each its own name in the column model."
            raise UserError(f"{other['source'].iloc[0]}: {model} has another {' or '.join(columns)} than above. {mend}")
        levels = {name: str(rows[name.lower()].iloc[0]) for name in factors}
        designs[str(model)] = Design(str(model), trained=not str(model).endswith(UNTRAINED), factors=levels)
    return designs


def _melted(path: Path, cells: pd.DataFrame, known: dict[str, str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a wide table in the long form, empty cells too, and a note on its columns that are no tasks."""
    named, *columns = (name for name in cells if name != "source")
    if named in known:
        raise UserError(f"{path}: the first column is the task {named}. Put a column with the models before it.")
    tasks = [name for name in columns if name in known]
    others = [name for name in columns if name not in known]
    unknown = next((name for name in others if not NO_TASK.match(name)), None)
    if unknown is not None or not tasks:
        raise UserError(
            f"{path}: column {unknown or named!r} is no task that is known. {suggest(unknown or named, known)} Long"
            ' form: model, task, score. For a task of your own write {"<task>": "Retrieval"} to tasks.json beside it.'
        )
    odd = cells[cells[named].duplicated() | (cells[named] == "")]
    if len(odd):
        row = odd.iloc[0]
        raise UserError(f"{row['source']}: model {row[named]!r} is there twice, or has no name. Mend the line.")
    long = cells.rename(columns={named: "model"}).set_index(["model", "source"])[tasks].rename_axis(columns="task")
    note = f"{path.name}: columns that are no task were left out: {', '.join(others)}."
    return long.stack().rename("score").reset_index(), (note,) if others else ()


def _scored(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with numbers for scores. Raises UserError for the first text that is no finite number."""
    numbers, missing = cells["score"].map(_number), cells["score"].str.lower().isin(MISSING)
    wrong = cells[numbers.isna() & ~missing]
    if len(wrong):
        row = wrong.iloc[0]
        raise UserError(f"{row['source']}: the score of {row['task']} is {row['score']!r}, not a number. Mend it.")
    problems = cells["source"] + ": there is no score of " + cells["task"] + " for " + cells["model"] + "."
    return cells.assign(score=numbers, problem=np.where(missing, problems, ""))


def _seed(text: str) -> str:
    """Return 0 for 00 and 0.0, so that one seed has one name."""
    return str(int(text.removesuffix(".0"))) if re.fullmatch(r"\d+(\.0)?", text) else text


def _number(text: str) -> float:
    """Return the number; NaN where there is no finite one. Python reads every digit, pandas does not."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
