"""The table of pairs: the Hodges-Lehmann difference on every task type, its mark, and the corrected p below."""

from typing import TYPE_CHECKING

from analysis.grids.formats import fraction, signed
from analysis.grids.grid import Cell, Grid
from analysis.manifests.cost import PAIR_COST_HEADER, has_costs, pair_cost_texts
from analysis.settings import Settings
from analysis.statistics.correction import passes
from analysis.tables.pair_caption import correction_text, mean_text, signed_rank_text, typical_text, unreachable_text

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from analysis.analyse import Result


MEAN = "Mean"  # heads the column of mean differences


def pair_grid(result: "Result") -> Grid:
    """One row per pair, one column per type: the difference of the test, its mark, and the corrected p below."""
    return pairs_by_type(result, _pair_cell, pair_caption(result))


def pairs_by_type(result: "Result", cell: "Callable[[pd.Series, Settings], Cell]", caption: str) -> Grid:
    """One row per pair; the mean difference, unmarked, then one column per type, each cell made from its row."""
    pairs, settings = result.pairs, result.settings
    kinds = pairs["type"].unique().tolist()
    total = len(pairs) // len(kinds)  # the same pairs on every type
    per_type = {kind: pairs.iloc[k * total : k * total + settings.rows_shown] for k, kind in enumerate(kinds)}
    rows, sized = [], has_costs(result.designs)
    for k in range(min(total, settings.rows_shown)):
        records = [per_type[kind].iloc[k] for kind in kinds]
        named = pair_name(result, records[0]["first"], records[0]["second"])
        both = [result.designs[records[0][name]] for name in ("first", "second")]
        costs = [Cell(text) for text in pair_cost_texts(*both)] if sized else []
        mean = Cell(signed(records[-1]["difference"]))
        rows.append([named, *costs, mean, *[cell(record, settings) for record in records]])
    header = ["Pair (second - first)", *(PAIR_COST_HEADER if sized else []), MEAN]
    header += [f"{kind} (n = {pairs['n_pairs'].iloc[k * total]})" for k, kind in enumerate(kinds)]
    rest = f"The first {len(rows)} of {total} pairs; pairs.csv has all." if total > len(rows) else ""
    return Grid("pairs", caption, header, rows, rest=rest, footnotes=footnote_texts(result))


def pair_name(result: "Result", one: str, other: str) -> Cell:
    """`second - first` with the letters of the differences between the two that were let through."""
    return Cell(f"{other} - {one}", notes=",".join(note.mark for note in result.footnotes if note.parts(one, other)))


def footnote_texts(result: "Result") -> tuple[str, ...]:
    """The differences beside the factors that `allow=` let through, one a line."""
    return tuple(f"{note.mark}: {note.text}" for note in result.footnotes)


def _pair_cell(row: "pd.Series", settings: Settings) -> Cell:
    """Difference, mark, corrected p; where alpha is out of reach, the smallest p that so many tasks allow instead."""
    n = row["n_pairs"] - row["n_zero"]
    fewer = f" at n = {n}" if row["n_zero"] else ""  # without zeros the head of the column says n
    text = signed(row["hodges_lehmann"])
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
    alpha, corrected = fraction(settings.alpha), settings.correction != "none"
    legend = [f"* = p at most {alpha}" + (" after the correction" if corrected else "")]
    if corrected:
        legend.append(f"(*) = at most {alpha} only before it")
    if (pairs["reachable"] != "yes").any():
        raw = ", and p before the correction (raw)" if (pairs["reachable"] == "uncorrected").any() else ""
        least = f"then the smallest p that they allow is given{raw}"
        legend.append(f"n.a. = {unreachable_text(pairs, settings)}; {least}")
    return (
        f"{typical_text(pairs, settings)}, with the p-value of the {signed_rank_text(pairs, settings)};"
        f" {correction_text(pairs, settings)}. {'; '.join(legend)}. {mean_text(pairs)}"
    )
