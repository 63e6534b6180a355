"""One question put to the scores: the material it reads, the answer that every rendering takes, and the registry.

A question is a module of this folder with `PLACE`, its place among the tables, and `answer(material)`, which is None
where the question does not apply. Nothing else names it: tables, figures, files, notes and sentences of the verdict
follow from its answer.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import numpy as np
import pandas as pd

from analysis.control.rule import Footnote
from analysis.drawings.drawing import Drawing
from analysis.grids.grid import Cell, Grid
from analysis.manifests.designs import Design
from analysis.questions.tables import tasks_text
from analysis.scores.items import Items, read_items
from analysis.settings import Settings
from analysis.statistics.arrays import Floats, Ints


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
    pairs: pd.DataFrame  # one row per (type, pair), see questions/compared_pairs.py
    means: pd.DataFrame = field(default_factory=pd.DataFrame)  # designs x types and means
    gain: pd.DataFrame | None = None  # (design, before | after | gain) x types and means
    gain_notes: list[str] = field(default_factory=list)
    references: dict[str, Design] = field(default_factory=dict)  # untrained references whose scores `gain` uses
    whole_frame: pd.DataFrame = field(default_factory=pd.DataFrame)  # `frame` with the scores of the references
    footnotes: list[Footnote] = field(default_factory=list)  # differences beside the factors that `allow=` let through
    proved: bool = True  # manifests show that the designs differ in the factors alone

    @property
    def tasks(self) -> list[str]:
        """The tasks, type by type."""
        return [task for tasks in self.types.values() for task in tasks]

    @cached_property
    def items(self) -> list[Items]:
        """The items of the tasks that have a file of them; none with items=none."""
        return [] if self.settings.items == "none" else read_items(self.frame, self.settings.items)

    @property
    def last(self) -> str:
        """The name of the last block: all tasks together, or the only type."""
        return list(self.blocks)[-1]

    @property
    def over(self) -> str:
        """Tasks that a mean over the last block is over: `40 tasks`, or `8 STS tasks`."""
        return tasks_text(self.last, len(self.matrix), "", "")

    def pairs_on(self, kind: str) -> pd.DataFrame:
        """Return the rows of the pairs on one block."""
        return self._on_blocks[kind][0]

    def differences(self, kind: str) -> Floats:
        """Return [P, n]: second minus first design of each of `pairs_on(kind)` on each task of the block."""
        return self._on_blocks[kind][1]

    @cached_property
    def _on_blocks(self) -> dict[str, tuple[pd.DataFrame, Floats]]:
        """Of each block the rows of its pairs, and their differences: asked for again and again."""
        by_kind = {}
        for kind, tasks in self.blocks.items():
            rows, scores = self.pairs[self.pairs["type"] == kind], self.matrix.loc[tasks]
            second, first = (scores[rows[side]].to_numpy(dtype=float) for side in ("second", "first"))
            by_kind[kind] = rows, (second - first).T
        return by_kind

    def highest(self, most: int) -> tuple[list[str], str]:
        """Return at most `most` designs, those of the highest mean over tasks, in config order; and a sentence, "" if
        all. The design that `against=` names is always among them."""
        designs = [str(label) for label in self.matrix.columns]
        if len(designs) <= most:
            return designs, ""
        means = self.matrix.mean()
        kept = set(means.nlargest(most).index)
        if self.control and self.control not in kept:
            kept = {self.control, *means.drop(self.control).nlargest(most - 1).index}
        also = f" and {self.control}" if self.control else ""
        sentence = f"Of {len(designs)} designs the {most} of the highest mean{also} are drawn."
        return [label for label in designs if label in kept], sentence

    def leading(self, pairs: pd.DataFrame) -> Ints:
        """Return the places of the rows of a table of pairs: those shown, of the highest means, in their order, then
        the others from high to low."""
        rank = self.matrix.mean().rank(ascending=False, method="first").where(self.matrix.columns != self.control, 0)
        lower = np.maximum(pairs["first"].map(rank), pairs["second"].map(rank)).to_numpy()
        order = np.argsort(lower, kind="stable")
        shown = self.settings.rows_shown
        return np.concatenate([np.sort(order[:shown]), order[shown:]])


@dataclass(frozen=True)
class Answer:
    """The answer of a question. Names of grids, figures and files begin with `name` where answers share a folder."""

    name: str
    title: str = ""  # heading, where the answer stands alone (representation); each grid has its own
    grids: list[Grid] = field(default_factory=list)
    draw: Callable[[], list[Drawing]] = list
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)  # csv name without .csv -> every digit
    notes: list[str] = field(default_factory=list)
    about: dict[tuple[str, str], str] = field(default_factory=dict)  # (first, second) -> sentence for a verdict on it
    main: bool = False  # its tables are printed too
    of_designs: bool = True  # the rows are designs or pairs, so footnotes on designs belong to the tables
    of_scores: bool = True  # the numbers are scores or differences of scores, so captions say `unit=percent`

    @cached_property
    def drawings(self) -> list[Drawing]:
        """The figures, drawn when they are first asked for."""
        return self.draw()


@cache
def questions() -> tuple[ModuleType, ...]:
    """Return the modules of this folder that answer a question, by their `PLACE`."""
    modules = [import_module(f"{__package__}.{module.name}") for module in iter_modules([str(Path(__file__).parent)])]
    return tuple(sorted((m for m in modules if hasattr(m, "answer")), key=lambda module: module.PLACE))


def answers(material: Material) -> list[Answer]:
    """Return the answers of all questions that apply, their tables with the footnotes on designs."""
    given = [answer for question in questions() if (answer := question.answer(material)) is not None]
    return [replace(one, grids=[_finished(grid, one, material) for grid in one.grids]) for one in given]


def _finished(grid: Grid, of: Answer, material: Material) -> Grid:
    ending = material.settings.numbers.said if of.of_scores else ""
    notes = material.footnotes if of.of_designs else []
    return footnoted(replace(grid, caption=grid.caption + ending), notes, material.designs)


def footnoted(grid: Grid, notes: list[Footnote], designs: Container[str]) -> Grid:
    """Return the grid with the notes below it, and their letters where its text columns name a design or a pair.

    A pair is `<second> - <first>`, as in the table of pairs; a table that names neither has the notes alone.
    """
    if not notes:
        return grid

    def lettered(cell: Cell) -> Cell:
        marks = [note.mark for note in notes if _touched(cell.text, note, designs)]
        return replace(cell, notes=",".join(filter(None, [cell.notes, *marks])))

    rows = [[*map(lettered, row[: grid.left]), *row[grid.left :]] for row in grid.rows]
    return replace(grid, rows=rows, footnotes=(*grid.footnotes, *(f"{note.mark}: {note.text}" for note in notes)))


def _touched(text: str, note: Footnote, designs: Container[str]) -> bool:
    if text in designs:
        return text in note.marked
    parts = text.split(" - ")  # a name may hold it too
    pairs = [(" - ".join(parts[:k]), " - ".join(parts[k:])) for k in range(1, len(parts))]
    return any(one in designs and other in designs and note.parts(one, other) for one, other in pairs)
