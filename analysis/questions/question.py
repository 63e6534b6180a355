"""One further question put to the same scores: what it reads, and what it hands to every rendering."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analysis.grids.grid import Grid
from analysis.manifests.designs import Design
from analysis.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Material:
    """The checked scores of the designs compared, in config order. Scores are between -1 and 1."""

    settings: Settings
    designs: dict[str, Design]  # label -> design
    control: str  # label of the design that `against=` names, or ""
    types: dict[str, list[str]]  # task type -> its tasks
    blocks: dict[str, list[str]]  # the types, and where there are several `All`: what each test is done on
    frame: "pd.DataFrame"  # long: design, model, seed, task, type, score, source; of these designs and tasks only
    matrix: "pd.DataFrame"  # tasks x designs, mean over seeds
    pairs: "pd.DataFrame"  # one row a (type, pair), see analysis.pairs
    odd: "pd.DataFrame | None" = None  # single scores far off, see analysis.questions.odd_cells


@dataclass(frozen=True)
class Section:
    """The answer: `grids` are printed in every format (each has a title), `frames` (csv name -> table, every digit)
    are written as csv and into result.json, `notes` are what a reader must know, `about` holds a sentence on a pair
    (first, second) that belongs to the verdict where the verdict is on that pair."""

    name: str
    grids: list[Grid] = field(default_factory=list)
    frames: dict[str, "pd.DataFrame"] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    about: dict[tuple[str, str], str] = field(default_factory=dict)
