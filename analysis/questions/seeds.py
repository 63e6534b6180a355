"""Every pair of designs with the seeds as a second source of chance: intervals over tasks, and over tasks and seeds."""

import numpy as np
import pandas as pd

from analysis.grids.formats import Numbers, percent
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import pair_places
from analysis.questions.question import Answer, Material
from analysis.questions.tables import OF_BEST, PAIR, Row, filled, pair_name, tasks_text
from analysis.settings import Settings
from analysis.statistics.arrays import Ints
from analysis.statistics.seed_errors import OTHERS, copies
from analysis.statistics.seeds import FEWEST_SEEDS, SeedTable, model_intervals, seed_pairs, seed_table

PLACE = 60
METHODS = (
    "Intervals over tasks and seeds come from the two-way random model with Satterthwaite's degrees of freedom"
    " [@satterthwaite1946]."
)
FEW_SEEDS = 5  # below it what the pair's own seeds say of their spread is worth little, see docs/decisions/seeds.md


def answer(material: Material) -> Answer | None:
    """Return the pairs of the designs that share two seeds or more; None without such designs."""
    settings, table = material.settings, seed_table(material.frame, list(material.designs), material.tasks)
    blocks = {kind: tasks for kind, tasks in material.blocks.items() if len(tasks) > 1}
    if table is None or not blocks:
        return None
    first, second = pair_places(table.designs, material.control)
    if not len(first):
        return None
    frame = _frame(table, blocks, (first, second), settings)
    last = frame[frame["type"] == list(blocks)[-1]]
    return Answer(
        "seeds",
        methods=[METHODS],
        grids=[_grid(last.iloc[material.leading(last)], table, settings)],
        frames={"seeds": frame},
        notes=_notes(last, len(table.seeds), material.pairs_on(material.last)),
    )


def _notes(rows: pd.DataFrame, seeds: int, pairs: pd.DataFrame) -> list[str]:
    """Notes on a pair's own seeds where they are few, and on the differences that seeds could explain.

    pairs: their tests, by which some are told with seeds that not all designs have.
    """
    notes = []
    if seeds < FEWEST_SEEDS:
        notes.append(
            f"Seeds: {seeds} seeds hardly say how far a pair's seeds vary; a star takes {FEWEST_SEEDS} or more."
        )
    if FEWEST_SEEDS <= seeds < FEW_SEEDS:
        notes.append(
            f"Seeds: {seeds} seeds say little of how far a pair's seeds vary, so the interval with its own seeds, on"
            " which a star rests, is wide. That with the seeds of all designs takes them to be equally sensitive to the"
            " seed."
        )
    clear = rows["low_over_tasks"] * rows["high_over_tasks"] > 0
    told = pd.MultiIndex.from_frame(pairs.loc[pairs["told"], ["first", "second"]])
    apart = pd.MultiIndex.from_frame(rows[["first", "second"]]).isin(told)
    lost = rows[clear & (rows["low_by_model"] * rows["high_by_model"] <= 0) & ~apart]
    if len(lost):
        names = listed(map(pair_name, lost.to_dict("records")), 4)
        notes.append(
            f"Tests over tasks alone speak of these runs. For the designs trained again with other seeds {len(lost)} of"
            f" {int(clear.sum())} differences whose interval over tasks leaves out 0"
            f" {'is' if len(lost) == 1 else 'are'} not shown, since the interval with the pair's own seeds holds 0:"
            f" {names}."
        )
    return notes


def _frame(
    table: SeedTable, blocks: dict[str, list[str]], pairs: tuple[Ints, Ints], settings: Settings
) -> pd.DataFrame:
    (first, second), level = pairs, 1 - settings.alpha
    names, parts = np.array(table.designs, dtype=object), []
    family = family_size(len(first), len(blocks), settings)
    for kind, tasks in blocks.items():
        scores = table.block(tasks)
        intervals = seed_pairs(scores, first, second, level)
        together = model_intervals(scores, first, second, 1 - settings.alpha / family)[0]
        columns = {"type": kind, "first": names[first], "second": names[second], "n_tasks": len(tasks)}
        columns |= {"n_seeds": len(table.seeds), "difference": intervals.difference}
        for name in ("over_tasks", "by_model", "by_pooled"):
            columns[f"low_{name}"], columns[f"high_{name}"] = getattr(intervals, name).T
        columns |= {"family_size": family, "low_together": together[:, 0], "high_together": together[:, 1]}
        columns |= {"seed_share": intervals.seed_share, "seeds_agreeing": intervals.seeds_agreeing}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def family_size(pairs: int, blocks: int, settings: Settings) -> int:
    """Return how many intervals are to hold together: as many as tests are corrected together; 1 without correction."""
    if settings.correction == "none":
        return 1
    return pairs if settings.family == "type" else pairs * blocks


def _grid(rows: pd.DataFrame, table: SeedTable, settings: Settings) -> Grid:
    family, level, numbers = rows["family_size"].iloc[0], percent(settings.alpha), settings.numbers
    intervals = {"over_tasks": f"{level} tasks", "by_model": f"{level} own seeds", "by_pooled": f"{level} all seeds"}
    intervals |= {"together": f"{level} of all {family:,} together"} if family > 1 else {}

    def cells(row: Row) -> list[Cell]:
        share, agree = f"{100 * row['seed_share']:.0f} %", f"{row['seeds_agreeing']} of {row['n_seeds']}"
        sizes = [numbers.signed(row["difference"]), *(ends(row, name, numbers) for name in intervals)]
        return list(map(Cell, [pair_name(row), *sizes, share, agree]))

    header = [PAIR, "Difference", *intervals.values(), "From seeds", "Seeds agree"]
    grid = Grid("seeds", _caption(rows, table, level), header, title="Pairs over tasks and seeds")
    return filled(grid, rows, cells, settings.rows_shown, f"{OF_BEST}; seeds.csv has all.")


def ends(row: Row, name: str, numbers: Numbers) -> str:
    """The interval in the columns low_<name> and high_<name> of a row: [+.0010, +.0210]."""
    return numbers.interval(row[f"low_{name}"], row[f"high_{name}"])


def _caption(rows: pd.DataFrame, table: SeedTable, level: str) -> str:
    over = tasks_text(rows["type"].iloc[0], rows["n_tasks"].iloc[0], "", "all ")
    family, quoted, copied = rows["family_size"].iloc[0], "", np.array(table.designs)[copies(table.scores)].tolist()
    few = f" {listed(copied, 4)}: one run, whose copies are no seeds, so none of its own varies." if copied else ""
    if family > 1:
        quoted = f", and, with the pair's own, that for all {family:,} pairs together (Bonferroni)"
    return (
        f"Mean differences over {over} and {len(table.seeds)} seeds with {level} intervals: Student's t over tasks, as"
        " for the pairs; over tasks and seeds by the two-way random model (a seed counts for all tasks and for both"
        " designs, which share its batches) with Satterthwaite's degrees of freedom, once with the pair's own seeds,"
        f" drawn towards the mean of all pairs, as if that were known from {OTHERS} degrees of freedom, where this is"
        f" wider, once with design x seed pooled over the {len(table.designs) - len(copied)} designs{quoted}. A star of"
        " the table of pairs takes the signed-rank test and the model with the pair's own seeds, after the correction."
        " From seeds: the part of the squared standard error that more seeds would remove. Seeds agree: seeds whose"
        f" mean difference has the sign shown.{few}"
    )
