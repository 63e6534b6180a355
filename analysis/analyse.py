"""Scores -> one result, which every rendering reads."""

from dataclasses import dataclass, field, replace

import pandas as pd

from analysis.control.rule import NO_PROOF, Control, controlled
from analysis.grids.grid import Grid
from analysis.questions.before_after import training_gain
from analysis.questions.compared_pairs import ALL, compare_pairs
from analysis.questions.means import seed_means, type_means
from analysis.questions.question import Answer, Material, answers
from analysis.scores.choose import choose, twins_of
from analysis.scores.complete import complete
from analysis.scores.load import load
from analysis.scores.long_table import Scores
from analysis.scores.tasks import sort_types
from analysis.settings import Settings
from analysis.verdict import verdict

MOST_NOTES = 7  # that a reader meets before any table is opened


@dataclass(frozen=True)
class Result:
    """All that the renderings need."""

    material: Material  # settings, designs, scores, pairs
    answers: list[Answer]  # tables, figures and files, in the order in which they are shown
    notes: list[str]
    verdict: str
    control_notes: list[str] = field(default_factory=list)  # those of the control rule; also among `notes`

    def grids(self, main: bool | None = None) -> list[Grid]:
        """Return the tables of all answers, of the main ones, or of the others."""
        return [grid for answer in self.answers if main in (None, answer.main) for grid in answer.grids]

    def page_notes(self) -> tuple[list[str], list[str]]:
        """Return the notes on the whole, those of the control rule first and those on the reading of files last: the
        first `MOST_NOTES`, and the others.

        The notes of an answer with tables stand below those.
        """
        table_notes = {note for answer in self.answers[1:] if answer.grids for note in answer.notes}
        notes = sorted(
            (note for note in self.notes if note not in table_notes), key=lambda note: note not in self.control_notes
        )
        return notes[:MOST_NOTES], notes[MOST_NOTES:]


def analyse(settings: Settings) -> Result:
    """Load, choose, complete, check, test. Raises UserError for anything in the input that the user can mend."""
    scores = complete(choose(load(settings), settings), settings.missing)
    rule = controlled(scores.designs, scores.tasks, settings)
    material = _material(replace(settings, against=scores.control), scores, rule)
    given = answers(material)
    notes = [*scores.notes, *rule.notes, *(note for one in given for note in one.notes)]
    notes += scores.reading  # last: how files were read changes the reading of no table
    return Result(material, given, notes, verdict(material, given), rule.notes)


def _material(settings: Settings, scores: Scores, rule: Control) -> Material:
    """Return the means and tests of checked scores."""
    designs, tasks = {label: scores.designs[label] for label in scores.compared}, scores.tasks
    frame = scores.frame[scores.frame["design"].isin(scores.compared)]
    types = _tasks_by_type(frame, settings.types)
    blocks = types if len(types) == 1 else {**types, ALL: tasks}
    matrix = seed_means(frame, list(designs), tasks)
    gain, gain_notes = training_gain(scores.frame, scores.designs, list(designs), types, settings)
    references = twins_of([] if gain is None else gain.index.unique("design"), scores.designs).values()
    return Material(
        settings,
        designs,
        settings.against,
        types,
        blocks,
        frame,
        matrix,
        compare_pairs(matrix, blocks, settings, settings.against, frame),
        means=type_means(matrix, types),
        gain=gain,
        gain_notes=gain_notes,
        references={label: scores.designs[label] for label in references if label not in designs},
        whole_frame=scores.frame[scores.frame["design"].isin([*designs, *references])],
        footnotes=rule.footnotes,
        proved=NO_PROOF not in rule.notes,
    )


def _tasks_by_type(frame: pd.DataFrame, wanted: tuple[str, ...]) -> dict[str, list[str]]:
    tasks = {kind: rows.unique().tolist() for kind, rows in frame.groupby("type")["task"]}
    return {kind: tasks[kind] for kind in sort_types(set(tasks), wanted)}
