"""Scores -> one result, which every rendering reads."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pandas as pd

from analysis.control.rule import NO_PROOF, Control, controlled
from analysis.grids.grid import Grid
from analysis.manifests.designs import Design
from analysis.questions.before_after import training_gain, twins_of
from analysis.questions.compared_pairs import ALL, compare_pairs
from analysis.questions.means import seed_means, type_means
from analysis.questions.odd_cells import odd_scores
from analysis.questions.question import Answer, Material, answers
from analysis.scores.choose import check_every_seed, choose_control, choose_designs, keep_tasks
from analysis.scores.definitions import benchmark_of
from analysis.scores.long_table import Scores
from analysis.scores.material import check_alike, left_out_notes, material_notes, without_holes, without_parts
from analysis.scores.missing import complete, policy_for
from analysis.scores.read import read_scores
from analysis.scores.task_types import sort_types
from analysis.settings import Settings
from analysis.verdict import summary, verdict

MOST_NOTES = 7  # that a reader meets before any table is opened


@dataclass(frozen=True)
class Result:
    """All that the renderings need."""

    material: Material  # settings, designs, scores, pairs
    answers: list[Answer]  # tables, figures and files, in the order in which they are shown
    notes: list[str]
    verdict: str
    summary: str = ""  # the verdict in two sentences, or three where few tasks carry it
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
    """Read, check, choose, test. Raises UserError for anything in the input that the user can mend."""
    benchmark = benchmark_of(settings.benchmark) if settings.benchmark else None
    scores = read_scores(settings, benchmark)
    designs = choose_designs(scores.designs, settings.models, settings.order)
    if "seed" not in settings.allow:
        check_every_seed(scores.frame, designs, settings.seeds)
    read = kept = keep_tasks(scores, settings.types, settings.tasks).frame
    policy = policy_for(settings.missing, (scores.designs[label] for label in designs))
    kept = kept[kept["design"].isin([*designs, *twins_of(designs, scores.designs).values()])]
    kept, hole_notes = without_holes(kept, scores.rows, policy)
    kept, part_notes = without_parts(kept, designs)
    whole = complete(kept, designs, policy)
    control = choose_control(scores.designs, designs, settings.against, whole.designs)
    designs, tasks, settings = whole.designs, whole.tasks, replace(settings, against=control)  # as tables name it
    rule = _controlled(scores, designs, kept["task"].unique(), settings)
    types = _tasks_by_type(kept, tasks, settings.types)
    matrix = seed_means(kept, designs, tasks)
    gain, gain_notes = training_gain(kept, scores.designs, designs, types, settings)
    gained = [] if gain is None else gain.index.unique("design")
    shown = {*designs, *twins_of(gained, scores.designs).values()}
    frame = kept[kept["design"].isin(shown) & kept["task"].isin(tasks)]
    rows = [scores.rows[position] for position in frame.index]
    check_alike(rows)
    blocks = types if len(types) == 1 else {**types, ALL: tasks}
    named = {label: scores.designs[label] for label in designs}
    compared = frame[frame["design"].isin(designs)]
    material = Material(
        settings,
        named,
        control,
        types,
        blocks,
        compared,
        matrix,
        compare_pairs(matrix, blocks, settings, control, frame),
        odd=odd_scores(_like(designs, read, scores.designs), designs, tasks),
        means=type_means(matrix, types),
        gain=gain,
        gain_notes=gain_notes,
        references={label: scores.designs[label] for label in shown if label not in named},
        whole_frame=frame,
        footnotes=rule.footnotes,
        proved=NO_PROOF not in rule.notes,
    )
    given = answers(material)
    notes = [*scores.naming, *material_notes(rows, benchmark), *left_out_notes(named.values(), tasks), *rule.notes]
    notes += [*hole_notes, *part_notes, *whole.notes]
    notes += [note for one in sorted(given, key=lambda one: one.aside) for note in one.notes]
    notes += scores.notes  # last: how files were read changes the reading of no table
    return Result(material, given, notes, verdict(material, given), summary(material, given), rule.notes)


def _like(compared: list[str], read: pd.DataFrame, designs: dict[str, Design]) -> pd.DataFrame:
    """The scores read, compared or not, of designs that are trained as those compared are (foreign ones: all)."""
    states = {designs[label].trained for label in compared}
    return read[read["design"].isin({label for label, design in designs.items() if design.trained in states})]


def _controlled(scores: Scores, compared: list[str], tasks: Iterable[str], settings: Settings) -> Control:
    """Hold the manifests of what the tables show, untrained references included, against the control rule."""
    twins = twins_of(compared, scores.designs).values()
    return controlled({label: scores.designs[label] for label in [*compared, *twins]}, tasks, settings)


def _tasks_by_type(frame: pd.DataFrame, tasks: list[str], wanted: tuple[str, ...]) -> dict[str, list[str]]:
    kind = dict(zip(frame["task"].tolist(), frame["type"].tolist(), strict=True))
    return {name: [t for t in tasks if kind[t] == name] for name in sort_types({kind[t] for t in tasks}, wanted)}
