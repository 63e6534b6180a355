"""Result -> grids: means by type, before and after training, pairs, effects of the factors."""

from typing import TYPE_CHECKING

from analysis.by_type import MEAN_TASKS, MEAN_TYPES
from analysis.correction import NAMES, passes
from analysis.cost import COST_HEADER, cost_texts, has_costs
from analysis.effect_tables import effect_grids
from analysis.formats import fraction, score, signed
from analysis.grid import Cell, Grid
from analysis.notes import ZEROS
from analysis.settings import Settings
from analysis.training_gain import STAGES

if TYPE_CHECKING:
    import pandas as pd

    from analysis.result import Result


def all_grids(result: "Result") -> list[Grid]:
    """Return the tables in the order in which they are printed."""
    gain = [] if result.gain is None else [gain_grid(result, result.gain)]
    further = [grid for section in result.sections for grid in section.grids]
    return [type_grid(result), *gain, pair_grid(result), *effect_grids(result.effects, result.settings), *further]


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
    sized = has_costs(result.designs)
    rows = []
    for design in kept:
        size = [Cell(text) for text in cost_texts(result.designs[design])] if sized else []
        values = zip(means.columns, means.loc[design].tolist(), strict=True)
        cells = [Cell(score(value), styles[column].get(design, "")) for column, value in values]
        rows.append([_named(result, design), *size, *cells])
    caption = "Mean score by task type (n tasks each). Best and second best of each column are set off."
    header = ["Design", *(COST_HEADER if sized else []), *_headed(result)]
    return Grid("by-type", caption, header, rows, rest=rest, footnotes=_footnotes(result))


def _named(result: "Result", design: str) -> Cell:
    """A design's name with the letters of the differences that were let through."""
    return Cell(design, notes=",".join(note.mark for note in result.footnotes if design in note.marked))


def _footnotes(result: "Result") -> tuple[str, ...]:
    return tuple(f"{note.mark}: {note.text}" for note in result.footnotes)


def _styles(column: "pd.Series", decimals: int) -> dict[str, str]:
    """Best and second, ties included; a column where all are equal has neither."""
    rounded = column.round(decimals)
    levels = sorted(set(rounded), reverse=True)[:2]
    if len(levels) < 2:
        return {}
    names = dict(zip(levels, ("best", "second"), strict=True))
    return {str(design): names[value] for design, value in rounded.items() if value in names}


def gain_grid(result: "Result", gain: "pd.DataFrame") -> Grid:
    """Before, after and gain for every design with an untrained reference."""
    designs = list(dict.fromkeys(gain.index.get_level_values("design")))
    shown = designs[: result.settings.rows_shown]
    rows = []
    for design in shown:
        for stage in STAGES:
            show = signed if stage == "gain" else score
            cells = [Cell(show(value)) for value in gain.loc[(design, stage)].tolist()]
            rows.append([_named(result, design) if stage == STAGES[0] else Cell(""), Cell(stage), *cells])
    caption = "Before and after training: the same design untrained (its random or plain start) and trained."
    rest = f"The first {len(shown)} of {len(designs)} designs; before_after.csv has all." if shown != designs else ""
    header = ["Design", "", *_headed(result)]
    return Grid("before-after", caption, header, rows, left=2, rest=rest, footnotes=_footnotes(result))


def pair_grid(result: "Result") -> Grid:
    """One row a pair, one column a type: the difference, its mark, and the corrected p below."""
    pairs, settings = result.pairs, result.settings
    kinds = list(dict.fromkeys(pairs["type"]))
    per_type = {kind: pairs[pairs["type"] == kind] for kind in kinds}
    total = len(per_type[kinds[0]])
    rows = []
    for k in range(min(total, settings.rows_shown)):
        records = [per_type[kind].iloc[k] for kind in kinds]
        one, other = records[0]["first"], records[0]["second"]
        marks = ",".join(note.mark for note in result.footnotes if note.parts(one, other))
        rows.append([Cell(f"{other} - {one}", notes=marks), *[_pair_cell(r, settings) for r in records]])
    header = ["Pair (second - first)", *[f"{kind} (n = {per_type[kind]['n_pairs'].iloc[0]})" for kind in kinds]]
    rest = f"The first {len(rows)} of {total} pairs; pairs.csv has all." if total > len(rows) else ""
    return Grid("pairs", pair_caption(result), header, rows, rest=rest, footnotes=_footnotes(result))


def _pair_cell(row: "pd.Series", settings: Settings) -> Cell:
    """Difference, mark, corrected p; where alpha is out of reach, the smallest p that so many tasks allow instead."""
    n = row["n_pairs"] - row["n_zero"]
    fewer = f" at n = {n}" if row["n_zero"] else ""  # without zeros the head of the column says n
    text = signed(row["difference"])
    raw_only = "(*)" if passes(row["p"], settings.alpha) else ""
    if row["reachable"] == "no":
        return Cell(text, below=(f"n.a.: p >= {fraction(row['p_min'])}{fewer}",))
    if row["reachable"] == "uncorrected":
        floor = f"n.a.: p >= {fraction(row['p_min_adjusted'])}{fewer}"
        return Cell(text, mark=raw_only, below=(floor, f"raw {fraction(row['p'])}"))
    return Cell(text, mark="*" if row["significant"] else raw_only, below=(fraction(row["p_adjusted"]),))


def pair_caption(result: "Result") -> str:
    """Name the test, its options, the correction, the family and the marks."""
    settings, pairs = result.settings, result.pairs
    alpha = fraction(settings.alpha)
    size = int(pairs["family_size"].max())
    which = f"pairs with {settings.against}" if settings.against else "pairs"
    what = f"the {which} of one task type" if settings.family == "type" else f"all {which} and task types of the table"
    correction = f"{NAMES[settings.correction]} correction over {what} (family of {size})"
    if settings.correction == "none":
        correction = "no correction for many tests"
    legend = [f"* = p at most {alpha}" + (" after the correction" if settings.correction != "none" else "")]
    if settings.correction != "none":
        legend.append(f"(*) = at most {alpha} only before it")
    if (pairs["reachable"] != "yes").any():
        after = " after the correction" if (pairs["reachable"] == "uncorrected").any() else ""
        least = "then the smallest p that they allow is given" + (
            ", and p before the correction (raw)" if after else ""
        )
        legend.append(f"n.a. = so few tasks that {alpha} cannot be reached{after}, whatever the scores; {least}")
    return (
        "Mean difference in score, second minus first, with the p-value of the two-sided exact Wilcoxon signed-rank"
        f" test; the pairing unit is the task, {ZEROS[settings.zeros]}; {correction}. {'; '.join(legend)}."
    )
