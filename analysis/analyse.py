"""Scores -> one result, which every rendering reads."""

from dataclasses import dataclass, field, replace

import pandas as pd

from analysis.control.rule import NO_PROOF, Control, controlled
from analysis.grids.grid import Grid
from analysis.questions.before_after import training_gain, twins_of
from analysis.questions.compared_pairs import ALL, compare_pairs
from analysis.questions.means import seed_means, type_means
from analysis.questions.question import Answer, Material, answers
from analysis.scores.check import check_alike, material_notes
from analysis.scores.choose import choose, choose_control, rows_of
from analysis.scores.complete import Complete, complete, policy_for
from analysis.scores.load import load
from analysis.scores.long_table import Scores
from analysis.scores.tasks import benchmark_of, sort_types
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
    benchmark = benchmark_of(settings.benchmark) if settings.benchmark else None
    scores = load(settings)
    chosen = choose(scores, settings)
    references = twins_of(chosen, scores.designs)
    policy = policy_for(settings.missing, (scores.designs[label] for label in chosen))
    whole = complete(rows_of(scores.frame, [*chosen, *references.values()], settings), chosen, policy)
    control = choose_control(scores.designs, chosen, settings.against, whole.designs)
    settings, designs = replace(settings, against=control), {label: scores.designs[label] for label in whole.designs}
    twins = {references[design]: scores.designs[references[design]] for design in designs if design in references}
    rule = controlled({**designs, **twins}, whole.tasks, settings)
    check_alike(whole.frame)
    material = _material(settings, scores, whole, references, rule)
    given = answers(material)
    notes = [*scores.naming, *material_notes(whole.frame, designs.values(), benchmark), *rule.notes, *whole.notes]
    notes += [note for one in given for note in one.notes]
    notes += scores.notes  # last: how files were read changes the reading of no table
    return Result(material, given, notes, verdict(material, given), rule.notes)


def _material(
    settings: Settings,
    scores: Scores,
    whole: Complete,
    references: dict[str, str],
    rule: Control,
) -> Material:
    """Return the means and tests of checked scores. references: design -> its untrained one."""
    frame, designs = whole.frame, {label: scores.designs[label] for label in whole.designs}
    types = _tasks_by_type(frame[frame["design"].isin(designs)], settings.types)
    blocks = types if len(types) == 1 else {**types, ALL: whole.tasks}
    matrix = seed_means(frame, whole.designs, whole.tasks)
    gain, gain_notes = training_gain(frame, scores.designs, whole.designs, types, settings)
    gained = [] if gain is None else gain.index.unique("design")
    shown = {references[design]: scores.designs[references[design]] for design in gained}
    frame = frame[frame["design"].isin([*designs, *shown])]
    return Material(
        settings,
        designs,
        settings.against,
        types,
        blocks,
        frame[frame["design"].isin(designs)],
        matrix,
        compare_pairs(matrix, blocks, settings, settings.against, frame),
        means=type_means(matrix, types),
        gain=gain,
        gain_notes=gain_notes,
        references={label: design for label, design in shown.items() if label not in designs},
        whole_frame=frame,
        footnotes=rule.footnotes,
        proved=NO_PROOF not in rule.notes,
    )


def _tasks_by_type(frame: pd.DataFrame, wanted: tuple[str, ...]) -> dict[str, list[str]]:
    tasks = {kind: rows.unique().tolist() for kind, rows in frame.groupby("type")["task"]}
    return {kind: tasks[kind] for kind in sort_types(set(tasks), wanted)}
