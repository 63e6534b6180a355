"""Means by task type, one row per design, with their intervals over seeds."""

import numpy as np
import pandas as pd

from analysis.formats import Unit, level
from analysis.names import by_number, listed
from analysis.render import BEST, SECOND, Section
from analysis.statistics.arrays import DECIMALS, Floats
from analysis.statistics.intervals import student_interval
from analysis.tables.compared_pairs import ALL, seed_cube
from analysis.tables.comparison import Comparison


def seed_means(frame: pd.DataFrame, designs: list[str], tasks: list[str]) -> pd.DataFrame:
    """Return tasks x designs: the mean over seeds, the score of a design on a task."""
    kept = frame[frame["design"].isin(designs) & frame["task"].isin(tasks)]
    return kept.groupby(["task", "design"])["score"].mean().unstack("design").loc[tasks, designs]


def means_table(compared: Comparison) -> pd.DataFrame:
    """Return one row per (block, design): `mean` over tasks and seeds, `low`, `high`: its interval over seeds, and of
    the means of its runs `sd_runs`, `lowest_run`, `highest_run`; nan below two seeds."""
    cube, rows = seed_cube(compared.frame, compared.matrix), []
    for kind, tasks in compared.blocks.items():
        of_tasks = cube[:, compared.matrix.index.get_indexer(tasks)]
        for k, design in enumerate(compared.matrix.columns):
            mean = float(compared.matrix.loc[tasks, design].mean())
            rows.append((kind, design, len(tasks), mean, *_of_runs(of_tasks[k].mean(axis=0), compared.settings.alpha)))
    columns = ["type", "design", "n_tasks", "mean", "n_seeds", "low", "high", "sd_runs", "lowest_run", "highest_run"]
    return pd.DataFrame(rows, columns=columns)


def _of_runs(means: Floats, alpha: float) -> tuple[float, ...]:
    runs = means[~np.isnan(means)]
    if len(runs) < 2:
        return (len(runs), *[np.nan] * 5)
    (low,), (high,) = student_interval(runs[None], 1 - alpha)
    return len(runs), float(low), float(high), float(runs.std(ddof=1)), float(runs.min()), float(runs.max())


def section(compared: Comparison) -> Section:
    """Return the table of means and means.csv."""
    table, unit = means_table(compared), compared.unit
    kept, rest = compared.highest(max(1, compared.settings.rows_shown))
    shown = pd.DataFrame({"Design": [compared.design_text(label) for label in kept]})
    emphasis: dict[tuple[int, str], str] = {}
    for kind, rows in table.groupby("type", sort=False):
        of = rows.set_index("design")
        name = f"{'Mean' if kind == ALL else kind} ({of['n_tasks'].iloc[0]})"
        shown[name] = [_cell(of.loc[label], unit) for label in kept]
        levels = sorted(set(of["mean"].round(DECIMALS)), reverse=True)[:2]
        ranks = dict(zip(levels, (BEST, SECOND), strict=False)) if len(levels) > 1 else {}
        places = {(k, name): ranks.get(round(of.loc[label, "mean"], DECIMALS), "") for k, label in enumerate(kept)}
        emphasis |= places
    over = f" ± {level(compared.settings.alpha)} interval over seeds (Student)" * bool(table["low"].notna().any())
    caption = (
        f"Mean score by task type{over}, number of tasks in brackets. Bold: best of its column; underlined: second."
    )
    made = compared.table("means", "Scores by task type", caption, shown, emphasis=emphasis, rest=rest)
    notes = seed_notes(compared.frame, list(compared.designs))
    return Section("means", "Scores by task type", [made], frames={"means": table}, notes=notes, main=True)


def seed_notes(frame: pd.DataFrame, designs: list[str]) -> list[str]:
    """Say which seeds each score is a mean of; designs with other seeds are named."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for design in designs:
        seeds = set(frame.loc[frame["design"] == design, "seed"]) - {""}
        groups.setdefault(tuple(by_number(seeds)), []).append(design)
    if len(groups) == 1:
        shared = next(iter(groups))
        return [f"Every design has {len(shared)} seed{'s' * (len(shared) > 1)}: {', '.join(shared)}."] if shared else []
    parts = [f"{listed(names, 4)}: {', '.join(seeds) or 'none known'}" for seeds, names in groups.items()]
    return [f"The designs have different seeds ({'; '.join(parts)}); each score is the mean over a design's own."]


def _cell(row: "pd.Series[float]", unit: Unit) -> str:
    """Return 43.2 ±0.4, or 43.2 without seeds."""
    half = (row["high"] - row["low"]) / 2
    return unit.score(row["mean"]) + (f" ±{unit.score(half)}" if np.isfinite(half) else "")
