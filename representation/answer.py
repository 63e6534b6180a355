"""What one question found: tables, figures, numbers and the sentences that a reader must know."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analysis.drawings.drawing import Drawing
from analysis.grids.grid import Grid

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Answer:
    """`name`: of the question, and of its files; `title`: a heading. `frames`: csv name without `.csv` -> every digit.

    Names of grids, drawings and frames begin with the question's name, since all answers share a folder.

    Each drawing's caption is a sentence that says what is drawn and over what.
    """

    name: str
    title: str
    grids: list[Grid] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    frames: dict[str, "pd.DataFrame"] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
