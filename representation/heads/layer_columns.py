"""Columns of a table that has numbers per layer: a column for each, or one that names the foremost."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from analysis.grids.grid import Cell

MOST_COLUMNS = 12
TOP = 5


def layer_columns(
    frame: pd.DataFrame,
    value: str,
    foremost: str,
    form: Callable[[float], str],
    below: Callable[[Any], tuple[str, ...]] = lambda row: (),
) -> tuple[list[str], dict[tuple[str, str], list[Cell]]]:
    """Return the header and (encoder, type) -> the cells of a long table with columns encoder, type, layer and `value`.

    A layer's cell is its value, printed by `form`, and what is `below` it. Where encoders differ in their layers, or
    have more than twelve, one column names the five of the highest value; foremost: in words which they are.
    """
    groups = {(str(label), str(kind)): rows for (label, kind), rows in frame.groupby(["encoder", "type"], sort=False)}
    layers = [list(rows["layer"]) for rows in groups.values()]
    if all(names == layers[0] for names in layers) and len(layers[0]) <= MOST_COLUMNS:
        return [f"Layer {name}" for name in layers[0]], {
            key: [Cell(form(getattr(row, value)), below=below(row)) for row in rows.itertuples()]
            for key, rows in groups.items()
        }
    cells = {}
    for key, rows in groups.items():
        first = rows.sort_values(value, ascending=False, kind="stable").head(TOP)
        named = (f"{layer} ({form(x)})" for layer, x in zip(first["layer"], first[value], strict=True))
        cells[key] = [Cell(", ".join(named))]
    return [f"The {TOP} layers {foremost}"], cells
