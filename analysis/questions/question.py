"""One question put to the scores: the material it reads, the answer that every rendering takes, and the registry.

A question is a module of this folder with `PLACE`, its place among the tables, and `answer(material)`, None where it
does not apply. Nothing else names it: its tables, figures, files, notes and methods follow from its answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.grids.grid import Grid
from analysis.manifests.designs import Design
from analysis.settings import Settings


@dataclass(frozen=True)
class Material:
    """The checked scores of the designs compared, in config order. Scores are between -1 and 1."""

    settings: Settings
    designs: dict[str, Design]  # label -> design
    control: str  # label of the design that `against=` names, or ""
    types: dict[str, list[str]]  # task type -> its tasks
    blocks: dict[str, list[str]]  # the types, and where there are several `All`: what each test is done on
    frame: pd.DataFrame  # long: design, model, seed, task, type, score, source; of these designs and tasks only
    matrix: pd.DataFrame  # tasks x designs, mean over seeds
    pairs: pd.DataFrame  # one row per (type, pair), see analysis.pairs
    odd: pd.DataFrame | None = None  # single scores far off, see analysis.questions.odd_cells


@dataclass(frozen=True)
class Answer:
    """What was found. Names of files begin with the question's name, or are those that README lists."""

    name: str
    title: str = ""  # heading, where the answer stands alone (representation); each grid has its own
    grids: list[Grid] = field(default_factory=list)
    draw: Callable[[], list[Drawing]] = list
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)  # csv name without .csv -> every digit
    notes: list[str] = field(default_factory=list)
    about: dict[tuple[str, str], str] = field(default_factory=dict)  # (first, second) -> sentence for a verdict on it

    @cached_property
    def drawings(self) -> list[Drawing]:
        """The figures, drawn when they are first asked for."""
        return self.draw()


@cache
def questions() -> tuple[ModuleType, ...]:
    """Return the modules of this folder that answer a question, by their `PLACE`."""
    modules = [import_module(f"{__package__}.{found.name}") for found in iter_modules([str(Path(__file__).parent)])]
    return tuple(sorted((m for m in modules if hasattr(m, "answer")), key=lambda module: module.PLACE))


def answers(material: Material) -> list[Answer]:
    """Return the answers of all questions that apply."""
    return [found for question in questions() if (found := question.answer(material)) is not None]
