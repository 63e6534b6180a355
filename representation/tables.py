"""Tables and figures of an answer from data frames: numbers are formatted here and nowhere else."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.grids.formats import score, signed
from analysis.grids.grid import Cell, Grid


def table(
    name: str,
    title: str,
    caption: str,
    frame: pd.DataFrame,
    *,
    left: int = 1,
    digits: int = 4,
    signs: Sequence[str] = (),
) -> Grid:
    """Return the table of a frame, whose columns are its header; the first `left` hold text.

    Whole numbers and words stand as they are, nan as "-", other numbers with `digits`, those of the columns `signs`
    with their sign.
    """

    def cell(column: str, value: Any) -> Cell:
        if isinstance(value, str) or not isinstance(value, Real):
            return Cell(str(value))
        number = float(value)
        if pd.isna(number):
            return Cell("-")
        if isinstance(value, int) or pd.api.types.is_integer(value):
            return Cell(f"{value:,}")
        return Cell(signed(number, digits) if column in signs else score(number, digits))

    header = [str(column) for column in frame.columns]
    rows = [[cell(*pair) for pair in zip(header, row, strict=True)] for row in frame.itertuples(index=False, name=None)]
    return Grid(name, caption, header, rows, left=left, title=title)


def figure(name: str, title: str, caption: str, drawn: Any) -> Drawing:
    """Return a figure with its words."""
    return Drawing(name, title, caption, title, drawn)
