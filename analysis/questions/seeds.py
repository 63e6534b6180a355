"""Every pair of designs with the seeds as a second source of chance: intervals over tasks, and over tasks and seeds."""

import numpy as np
import pandas as pd

from analysis.grids.formats import interval, percent, signed
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.question import Answer, Material
from analysis.settings import Settings
from analysis.statistics.seeds import SeedTable, model_intervals, seed_pairs, seed_table

PLACE = 160
METHODS = (
    "Intervals over tasks and seeds come from the two-way random model with Satterthwaite's degrees of freedom"
    " [@satterthwaite1946]."
)

FEW_SEEDS = 5  # below it what the pair's own seeds say of their spread is worth little, see docs/decisions/seeds.md


def answer(material: Material) -> Answer | None:
    """Return the pairs of the designs that share two seeds or more; None without such designs."""
    tasks = [task for own in material.types.values() for task in own]
    table = seed_table(material.frame, list(material.designs), tasks)
    if table is None:
        return None
    first, second = _pairs(table, material.control)
    blocks = {kind: own for kind, own in material.blocks.items() if len(own) > 1}
    if not len(first) or not blocks:
        return None
    settings = material.settings
    frame = _frame(table, blocks, (first, second), settings)
    last = frame[frame["type"] == list(blocks)[-1]]
    grid = _grid(last, table, settings.rows_shown, settings.alpha)
    about = _about(last, settings.alpha)
    return Answer(
        "seeds",
        methods=[METHODS],
        grids=[grid],
        frames={"seeds": frame},
        notes=_notes(last, len(table.seeds)),
        about=about,
    )


def _about(rows: pd.DataFrame, alpha: float) -> dict[tuple[str, str], str]:
    """A sentence per pair: whether its mean difference is shown for the designs trained with any seed, in its family.

    The verdict speaks of the pair that looks best, so the interval is the one that holds for all pairs together.
    """
    found = {}
    for row in rows.to_dict("records"):
        word = "is" if row["low_together"] * row["high_together"] > 0 else "is not"
        m = row["family_size"]
        together = f", Bonferroni over {m:,} {'pairs' if m > 1 else 'pair'}" if m > 1 else ""
        found[row["first"], row["second"]] = (
            f"For the designs trained with any seed the mean difference ({row['second']} minus {row['first']}) {word}"
            f" shown: over tasks and {row['n_seeds']} seeds its {percent(alpha)} interval is {ends(row, 'together')}"
            f" (model of seeds.csv{together})."
        )
    return found


def _notes(rows: pd.DataFrame, seeds: int) -> list[str]:
    """Notes on a pair's own seeds where they are few, and on the differences that seeds could explain."""
    notes = []
    if seeds < FEW_SEEDS:
        notes.append(
            f"Seeds: {seeds} seeds say little of how far a pair's seeds vary, so the interval with its own seeds is"
            " wide, or too narrow where seeds matter much (docs/decisions/seeds.md); trust the interval with the seeds"
            " of all designs."
        )
    clear = rows["low_over_tasks"] * rows["high_over_tasks"] > 0
    lost = rows[clear & (rows["low_by_pooled"] * rows["high_by_pooled"] <= 0)]
    if len(lost):
        names = listed([f"{row.second} - {row.first}" for row in lost.itertuples()], 4)
        notes.append(
            f"The tests over tasks speak of these runs. For the designs trained again with other seeds {len(lost)} of"
            f" {int(clear.sum())} differences whose interval over tasks leaves out 0"
            f" {'is' if len(lost) == 1 else 'are'} not shown, since the model's interval holds 0: {names}."
        )
    return notes


def _pairs(table: SeedTable, control: str) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.triu_indices(len(table.designs), k=1)
    if control:
        held = np.array([control in (table.designs[i], table.designs[j]) for i, j in zip(first, second, strict=True)])
        first, second = first[held], second[held]
    return first, second


def _frame(
    table: SeedTable, blocks: dict[str, list[str]], pairs: tuple[np.ndarray, np.ndarray], settings: Settings
) -> pd.DataFrame:
    (first, second), level = pairs, 1 - settings.alpha
    names = np.array(table.designs, dtype=object)
    family = family_size(len(first), len(blocks), settings)
    parts = []
    for kind, tasks in blocks.items():
        found = seed_pairs(table.block(tasks), first, second, level)
        columns = {"type": kind, "first": names[first], "second": names[second], "n_tasks": len(tasks)}
        columns |= {"n_seeds": len(table.seeds), "difference": found.difference}
        for name in ("over_tasks", "by_model", "by_pooled"):
            low, high = getattr(found, name).T
            columns |= {f"low_{name}": low, f"high_{name}": high}
        together = model_intervals(table.block(tasks), first, second, 1 - settings.alpha / family)[2]
        columns |= {"family_size": family, "low_together": together[:, 0], "high_together": together[:, 1]}
        columns |= {"seed_share": found.seed_share, "seeds_agreeing": found.seeds_agreeing}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def family_size(pairs: int, blocks: int, settings: Settings) -> int:
    """Return how many intervals are to hold together: as many as tests are corrected together; 1 without correction."""
    if settings.correction == "none":
        return 1
    return pairs if settings.family == "type" else pairs * blocks


def _grid(rows: pd.DataFrame, table: SeedTable, shown: int, alpha: float) -> Grid:
    cells, several = [], bool(rows["family_size"].iloc[0] > 1)
    for _, row in rows.head(shown).iterrows():
        intervals = [ends(row, name) for name in ("over_tasks", "by_model", "by_pooled", "together")[: 3 + several]]
        share, agree = f"{100 * row['seed_share']:.0f} %", f"{row['seeds_agreeing']} of {row['n_seeds']}"
        texts = [f"{row['second']} - {row['first']}", signed(row["difference"]), *intervals, share, agree]
        cells.append([Cell(text) for text in texts])
    level = percent(alpha)
    header = ["Pair (second - first)", "Difference", f"{level} tasks", f"{level} own seeds", f"{level} all seeds"]
    header += [f"{level} of all {rows['family_size'].iloc[0]:,} together"] if several else []
    rest = f"The first {shown} of {len(rows)} pairs; seeds.csv has all." if len(rows) > shown else ""
    return Grid(
        "seeds", _caption(rows, table, level), [*header, "From seeds", "Seeds agree"], cells, rest=rest,
        title="Pairs over tasks and seeds",
    )  # fmt: skip


def _together(rows: pd.DataFrame) -> str:
    m = rows["family_size"].iloc[0]
    return f", and that for all {m:,} pairs together (Bonferroni), which the verdict quotes" if m > 1 else ""


def ends(row: pd.Series | dict[str, float], name: str) -> str:
    """The interval in the columns low_<name> and high_<name> of a row: [+.0010, +.0210]."""
    return interval(row[f"low_{name}"], row[f"high_{name}"])


def _caption(rows: pd.DataFrame, table: SeedTable, level: str) -> str:
    kind, n = rows["type"].iloc[0], rows["n_tasks"].iloc[0]
    what = f"all {n} tasks" if kind == "All" else f"{n} {kind} tasks"
    return (
        f"Mean differences over {what} and {len(table.seeds)} seeds with {level} intervals: Student's t over tasks, as"
        " for the pairs; over tasks and seeds by the two-way random model (a seed counts for all tasks and for both"
        " designs, which share its batches) with Satterthwaite's degrees of freedom, once with the pair's own seeds,"
        f" once with design x seed pooled over the {len(table.designs)} designs{_together(rows)}. No star: all are of"
        " the mean, the stars of the pairs belong to the signed-rank test. From"
        " seeds: the part of the squared standard error that more seeds would remove. Seeds agree: seeds whose mean"
        " difference has the sign shown."
    )
