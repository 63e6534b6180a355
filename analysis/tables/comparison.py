"""What every table is made from: checked scores of some designs, the tests of their pairs, their names."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from analysis.control.rule import Footnote
from analysis.formats import Unit
from analysis.manifests.designs import Design
from analysis.render import Table
from analysis.settings import Settings
from analysis.statistics.arrays import Ints
from analysis.tables.compared_pairs import ALL


@dataclass(frozen=True)
class Comparison:
    """Checked scores of the compared designs, in config order. Scores are between -1 and 1."""

    settings: Settings
    designs: dict[str, Design]  # label -> design
    control: str  # label of the design that `against=` names, or ""
    types: dict[str, list[str]]  # task type -> its tasks
    blocks: dict[str, list[str]]  # the types, and where there are several `All`: what each test is done on
    frame: pd.DataFrame  # long: design, model, seed, task, type, score, source; of these designs and tasks only
    matrix: pd.DataFrame  # tasks x designs, mean over seeds
    pairs: pd.DataFrame  # one row per (type, pair), see compared_pairs.py
    footnotes: list[Footnote] = field(default_factory=list)  # differences beside the factors that `allow=` let through

    @property
    def unit(self) -> Unit:
        """How scores are printed."""
        return self.settings.numbers

    @property
    def tasks(self) -> list[str]:
        """The tasks, type by type."""
        return [task for tasks in self.types.values() for task in tasks]

    @property
    def last(self) -> str:
        """The name of the last block: all tasks together, or the only type."""
        return list(self.blocks)[-1]

    @property
    def over(self) -> str:
        """Tasks that a mean over the last block is over: `40 tasks`, or `8 STS tasks`."""
        return tasks_text(self.last, len(self.matrix))

    @property
    def main_pairs(self) -> pd.DataFrame:
        """The pairs on all tasks together, or on the only type."""
        return self.pairs_on(self.last)

    def pairs_on(self, kind: str) -> pd.DataFrame:
        """Return the rows of the pairs on one block."""
        return self.pairs[self.pairs["type"] == kind]

    @cached_property
    def means(self) -> "pd.Series[float]":
        """The mean of each design over the tasks and its seeds, in config order."""
        return self.matrix.mean()

    @property
    def reference(self) -> str:
        """The design that figures and tables by type compare with: the control, else that of the highest mean."""
        return self.control or str(self.means.idxmax())

    def highest(self, most: int) -> tuple[list[str], str]:
        """Return at most `most` designs, those of the highest mean over tasks, in config order; and a sentence, "" if
        all. The design that `against=` names is always among them."""
        designs = [str(label) for label in self.matrix.columns]
        if len(designs) <= most:
            return designs, ""
        kept = set(self.means.nlargest(most).index)
        if self.control and self.control not in kept:
            kept = {self.control, *self.means.drop(self.control).nlargest(most - 1).index}
        sentence = f"Shown: the {most} of {len(designs)} designs of the highest mean."
        return [label for label in designs if label in kept], sentence

    def leading(self, pairs: pd.DataFrame) -> Ints:
        """Return the places of pairs from those of the highest means to the lowest; those shown in their own order."""
        rank = self.means.rank(ascending=False, method="first").where(self.matrix.columns != self.control, 0)
        lower = pd.concat([pairs["first"].map(rank), pairs["second"].map(rank)], axis=1).max(axis=1).to_numpy()
        order = lower.argsort(kind="stable")
        order[: self.settings.rows_shown].sort()
        return order

    def design_text(self, label: str) -> str:
        """Return a design with the letters of its footnotes: `eos-causal [a]`."""
        return _lettered(label, [note.mark for note in self.footnotes if label in note.marked])

    def pair_text(self, first: str, second: str) -> str:
        """Return a pair with the letters of its footnotes: `multilayer-bi - eos-causal [a]`."""
        name = f"{second} - {first}"
        return _lettered(name, [note.mark for note in self.footnotes if note.parts(first, second)])

    def pair_texts(self, pairs: pd.DataFrame) -> list[str]:
        """Return `pair_text` of every row."""
        return [self.pair_text(*both) for both in zip(pairs["first"], pairs["second"], strict=True)]

    @property
    def notes_below(self) -> tuple[str, ...]:
        """The footnotes, for tables whose rows are designs or pairs."""
        return tuple(f"{note.mark}: {note.text}" for note in self.footnotes)

    def table(self, name: str, title: str, caption: str, frame: pd.DataFrame, **further: object) -> Table:
        """Return a table of designs or pairs, with the footnotes on them and at most `rows_shown` rows."""
        made = Table(name, title, caption, frame, footnotes=self.notes_below, **further)  # type: ignore[arg-type]
        return made.first(self.settings.rows_shown, "rows; the csv files have all")


def _lettered(name: str, marks: Iterable[str]) -> str:
    letters = ",".join(marks)
    return f"{name} [{letters}]" if letters else name


def tasks_text(kind: str, n: int) -> str:
    """Return "40 tasks" for the block of all, "8 STS tasks" for a type."""
    return f"{n} tasks" if kind == ALL else f"{n} {kind} tasks"
