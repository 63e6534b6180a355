"""The long table of scores: one row per (model, seed, task), of one source or of all."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.manifests.designs import Design
from analysis.scores.tasks import Benchmark
from analysis.settings import public_path

# of a file of scores
IN_FILES = ["design", "model", "seed", "task", "type", "score", "split", "subsets", "manifest", "source"]
NAMED_SUBSETS = 60


@dataclass(frozen=True)
class Row:
    """The score of a model, with a seed ("" where none is known), on a task."""

    model: str
    seed: str
    task: str
    score: float
    source: str  # file, or file and line, for error messages
    type: str = ""  # "" where the file does not say
    split: str = ""  # what it is a score of, "" where the source does not say; of several: validation;test
    subsets: str = ""  # of several, which are averaged: en-en;es-es
    dataset: str = ""  # revision of the data set
    mteb: str = ""  # version that scored it
    manifest: str = ""  # sha256 of the run's manifest, as that states it
    problem: str = ""  # why there is no score, which is NaN then: a hole in the table


COLUMNS = list(Row.__dataclass_fields__)


@dataclass(frozen=True)
class Source:
    """The scores of one path of `scores=`. `frame`: the columns of `Row`; `designs`: model -> design."""

    path: Path
    frame: pd.DataFrame
    designs: dict[str, Design]
    types: dict[str, str] = field(default_factory=dict)  # task -> type, from a tasks.json
    notes: tuple[str, ...] = ()

    def changed(self, *notes: str, **parts: Any) -> "Source":
        """Return the source with other parts and further notes."""
        return replace(self, **parts, notes=(*self.notes, *notes))


@dataclass(frozen=True)
class Scores:
    """All sources as one table, as `load`, `choose` and `complete` hand it on.

    `frame`: the columns of `Row` and `design`, score in -1..1; `designs`: label -> design, in order; `control`: the one
    of them that `against=` names, or ""; `reading`: notes on how files were read.
    """

    frame: pd.DataFrame
    designs: dict[str, Design]
    benchmark: Benchmark | None = None
    control: str = ""
    notes: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[str]:
        """The tasks, in the order in which they were read."""
        return self.frame["task"].unique().tolist()


def table(rows: list[Row] | pd.DataFrame) -> pd.DataFrame:
    """Return the frame of a source; a column that is not there is empty."""
    frame = pd.DataFrame(rows, columns=COLUMNS) if isinstance(rows, list) else rows
    return frame.assign(**dict.fromkeys([name for name in COLUMNS if name not in frame], ""))[COLUMNS]


def scores_for_file(frame: pd.DataFrame, designs: Mapping[str, Design]) -> pd.DataFrame:
    """Return the long table with a column per factor, so that `read_csv` reads it again.

    It has the number of subsets in place of names that would fill a page, and public paths, as two clones write them.
    """
    sources = frame["source"].map(lambda source: public_path(Path(source)))
    shown = frame[IN_FILES].assign(subsets=frame["subsets"].map(counted), source=sources)
    names = dict.fromkeys(name for design in designs.values() for name in design.factors if name not in shown)
    return shown.assign(**{name: [designs[d].factors.get(name, "") for d in frame["design"]] for name in names})


def counted(subsets: str) -> str:
    """Return the names of subsets as `Row` has them, or their number where they are many: "376 subsets"."""
    count = subsets.count(";") + 1
    return subsets if count <= NAMED_SUBSETS else f"{count} subsets"
