"""Result -> grids: means by type, before and after training, pairs, effects of the factors."""

import math
from typing import TYPE_CHECKING

from analysis.by_type import MEAN_TASKS, MEAN_TYPES
from analysis.factorial.effect_tables import effect_grids
from analysis.grids.formats import fraction, score, signed
from analysis.grids.grid import Cell, Grid
from analysis.manifests.cost import cost_header, cost_texts, has_costs, memory_kinds, memory_note
from analysis.tables.footnoted import footnoted
from analysis.tables.pair_tables import footnote_texts, pair_grid
from analysis.tables.paper_layout import paper_grid
from analysis.training_gain import STAGES

if TYPE_CHECKING:
    import pandas as pd

    from analysis.analyse import Result


def all_grids(result: "Result") -> list[Grid]:
    """Return the tables in the order in which they are written: the main ones, then those of the sections."""
    return main_grids(result) + further_grids(result)


def main_grids(result: "Result") -> list[Grid]:
    """Return the tables that are printed too: means, before and after training, pairs, effects of the factors."""
    gain = [] if result.gain is None else [gain_grid(result, result.gain)]
    pairs = paper_grid(result) if result.settings.layout == "paper" else pair_grid(result)
    return [type_grid(result), *gain, pairs, *effect_grids(result.effects, result.settings)]


def further_grids(result: "Result") -> list[Grid]:
    """Return the tables of the sections."""
    grids = [grid for section in result.sections for grid in section.grids]
    return [footnoted(grid, result.footnotes, result.designs) for grid in grids]


def _headed(result: "Result") -> list[str]:
    """The column names of the means, with the number of tasks in each type."""
    sizes = {kind: len(tasks) for kind, tasks in result.types.items()}
    sizes[MEAN_TASKS] = sum(sizes.values())
    names = {MEAN_TYPES: f"Mean ({len(result.types)} types)", MEAN_TASKS: f"Mean ({sizes[MEAN_TASKS]} tasks)"}
    return [names.get(column, f"{column} (n = {sizes.get(column, 0)})") for column in result.means.columns]


def type_grid(result: "Result") -> Grid:
    """Means by type; with more designs than are shown, the highest means, in config order."""
    means, shown = result.means, result.settings.rows_shown
    kept, rest = list(means.index), ""
    if len(kept) > shown:
        top = set(means[MEAN_TASKS if MEAN_TASKS in means else means.columns[0]].nlargest(shown).index)
        kept = [design for design in kept if design in top]
        rest = f"The {shown} highest of {len(means)} designs; by_type.csv has all."
    styles = {column: _styles(means[column], result.settings.decimals) for column in means.columns}
    sized, kinds = has_costs(result.designs), memory_kinds(result.designs.values())
    rows = []
    for design in kept:
        size = [Cell(text) for text in cost_texts(result.designs[design], kinds)] if sized else []
        values = zip(means.columns, means.loc[design].tolist(), strict=True)
        cells = [Cell(score(value), styles[column].get(design, "")) for column, value in values]
        rows.append([_named(result, design), *size, *cells])
    caption = "Mean score by task type (n tasks each). Best and second best of each column are set off."
    caption += memory_note(kinds)
    header = ["Design", *(cost_header(kinds) if sized else []), *_headed(result)]
    return Grid("by-type", caption, header, rows, rest=rest, footnotes=footnote_texts(result))


def _named(result: "Result", design: str) -> Cell:
    """A design's name with the letters of the differences that were let through."""
    return Cell(design, notes=",".join(note.mark for note in result.footnotes if design in note.marked))


def _styles(column: "pd.Series", decimals: int) -> dict[str, str]:
    """Best and second, ties included; a column where all are equal has neither."""
    rounded = column.round(decimals)
    levels = sorted(set(rounded), reverse=True)[:2]
    if len(levels) < 2:
        return {}
    names = dict(zip(levels, ("best", "second"), strict=True))
    return {str(design): names[value] for design, value in rounded.items() if value in names}


def _p(value: float) -> str:
    return "" if math.isnan(value) else fraction(value)  # none for a mean over types


def _typical(value: float) -> str:
    return "" if math.isnan(value) else signed(value)


SHOWN = {"gain": signed, "typical gain": _typical, "p": _p}


def gain_grid(result: "Result", gain: "pd.DataFrame") -> Grid:
    """Before, after and gain for every design with an untrained reference."""
    designs = list(dict.fromkeys(gain.index.get_level_values("design")))
    shown = designs[: result.settings.rows_shown]
    rows = []
    sized, kinds = has_costs(result.designs), memory_kinds(result.designs.values())
    for design in shown:
        for stage in STAGES:
            show = SHOWN.get(stage, score)
            spent = cost_texts(result.designs[design], kinds) if stage == "after" else [""] * len(cost_header(kinds))
            costs = [Cell(text) for text in spent] if sized else []
            cells = [Cell(show(value)) for value in gain.loc[(design, stage)].tolist()]
            rows.append([_named(result, design) if stage == STAGES[0] else Cell(""), Cell(stage), *costs, *cells])
    caption = (
        "Before and after training: the same design untrained (its random or plain start) and trained. Gain: of the"
        " means. Typical gain: Hodges-Lehmann difference over tasks, with p of its two-sided exact Wilcoxon signed-rank"
        f" test, uncorrected.{memory_note(kinds)}"
    )
    rest = f"The first {len(shown)} of {len(designs)} designs; before_after.csv has all." if shown != designs else ""
    header = ["Design", "", *(cost_header(kinds) if sized else []), *_headed(result)]
    return Grid("before-after", caption, header, rows, left=2, rest=rest, footnotes=footnote_texts(result))
