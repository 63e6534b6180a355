"""Scores -> one result, which every rendering reads."""

from dataclasses import dataclass, replace

import pandas as pd

from analysis.control.rule import Control, controlled
from analysis.render import Section, Table
from analysis.scores.choose import choose
from analysis.scores.complete import complete
from analysis.scores.load import load
from analysis.scores.long_table import Scores
from analysis.scores.tasks import sort_types
from analysis.settings import Settings
from analysis.tables.compared_pairs import ALL, compare_pairs
from analysis.tables.comparison import Comparison
from analysis.tables.means import seed_means
from analysis.tables.sections import sections
from analysis.verdict import verdict


@dataclass(frozen=True)
class Result:
    """All that the renderings need. `notes`: on the whole; those of a section stand there."""

    compared: Comparison  # settings, designs, scores, pairs
    sections: list[Section]  # tables, figures and csv files, in the order in which they are shown
    notes: list[str]
    verdict: str
    rule: Control  # what the control rule found

    @property
    def tables(self) -> list[Table]:
        """The tables of all sections."""
        return [table for section in self.sections for table in section.tables]


def analyse(settings: Settings) -> Result:
    """Load, choose, complete, check, test. Raises UserError for anything in the input that the user can mend."""
    scores = complete(choose(load(settings), settings), settings.missing)
    rule = controlled(scores.designs, scores.tasks, settings)
    compared = _compared(replace(settings, against=scores.control), scores, rule)
    notes = [*rule.said, *scores.notes, *scores.reading]  # last: how files were read changes no table
    return Result(compared, sections(compared), notes, verdict(compared), rule)


def _compared(settings: Settings, scores: Scores, rule: Control) -> Comparison:
    """Return the means and tests of checked scores."""
    types = _tasks_by_type(scores.frame, settings.types)
    blocks = types if len(types) == 1 else {**types, ALL: scores.tasks}
    matrix = seed_means(scores.frame, list(scores.designs), scores.tasks)
    pairs = compare_pairs(matrix, blocks, settings, settings.against, scores.frame)
    return Comparison(
        settings, scores.designs, settings.against, types, blocks, scores.frame, matrix, pairs, rule.footnotes
    )


def _tasks_by_type(frame: pd.DataFrame, wanted: tuple[str, ...]) -> dict[str, list[str]]:
    tasks = {kind: rows.unique().tolist() for kind, rows in frame.groupby("type")["task"]}
    return {kind: tasks[kind] for kind in sort_types(set(tasks), wanted)}
