"""The scores that one path of `scores=` holds."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.manifests.designs import Design
from analysis.scores.mteb_task import Row

COLUMNS = list(Row.__dataclass_fields__)


@dataclass(frozen=True)
class Source:
    """`frame`: a row a score, with the columns of `Row`; `designs`: model -> design."""

    path: Path
    frame: pd.DataFrame
    designs: dict[str, Design]
    types: dict[str, str] = field(default_factory=dict)  # task -> type, from a tasks.json
    notes: tuple[str, ...] = ()

    def changed(self, *notes: str, **parts: Any) -> "Source":
        """Return the source with other parts and further notes."""
        return replace(self, **parts, notes=(*self.notes, *notes))


def table(rows: list[Row] | pd.DataFrame) -> pd.DataFrame:
    """Return the frame of a source; a column that is not there is empty."""
    frame = pd.DataFrame(rows, columns=COLUMNS) if isinstance(rows, list) else rows
    return frame.assign(**dict.fromkeys([name for name in COLUMNS if name not in frame], ""))[COLUMNS]
