"""The designs and tasks that `models=`, `seeds=`, `types=` and `tasks=` choose, and their order."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import pandas as pd

from analysis.manifests.designs import Design, config_order, names_of
from analysis.names import by_number, listed, suggest
from analysis.scores.long_table import Scores
from analysis.settings import Settings
from cli.errors import UserError


def choose(scores: Scores, settings: Settings) -> Scores:
    """Return the scores of what is compared, on the tasks asked for.

    Without `models=`: all trained designs (or all, where none is trained), in config order. With it: in the order
    given, the matches of a glob in config order; a glob takes untrained references only if it says "untrained".
    Raises UserError for a name or pattern without a match, for one design alone, and for one that lacks some of the
    seeds asked for.
    """
    scores = _of_seeds(scores, settings)
    compared = _compared(scores.designs, settings)
    if settings.seeds and "seed" not in settings.allow:
        _check_every_seed(scores.frame, compared, settings.seeds)
    frame = _rows(scores.frame, settings)
    return replace(
        scores,
        frame=frame[frame["design"].isin(compared)],
        designs={label: scores.designs[label] for label in compared},
        control=_control(scores.designs, compared, settings.against),
    )


def _of_seeds(scores: Scores, settings: Settings) -> Scores:
    """Return the scores of `seeds=` alone. A design that has none of them is left out, which a note says where
    `models=` does not say which are wanted. Raises UserError for a seed that no score has."""
    wanted, there = settings.seeds, set(scores.frame["seed"])
    absent = [seed for seed in wanted if seed not in there]
    if absent:
        state = f"have {listed(by_number(there - {''}))}" if there - {""} else "name no seeds"
        raise UserError(f"seeds= names {listed(absent)}, which no score has. The scores {state}.")
    if not wanted:
        return scores
    frame = scores.frame[scores.frame["seed"].isin(wanted)]
    have = set(frame["design"])
    kept = {
        label: replace(design, runs=tuple(run for run in design.runs if run.seed in wanted))
        for label, design in scores.designs.items()
        if label in have
    }
    gone = [label for label, design in scores.designs.items() if design.trained and label not in have]
    note = f"Left out, since they have no score with a seed of seeds=: {listed(gone)}."
    notes = (note, *scores.notes) if gone and not settings.models else scores.notes
    return replace(scores, frame=frame, designs=kept, notes=notes)


def _compared(designs: dict[str, Design], settings: Settings) -> list[str]:
    """Return the labels of what is compared, in order."""
    ordered = config_order(designs, settings.order)
    chosen = [label for label in ordered if designs[label].trained] or ordered
    if settings.models:
        chosen = []
        for pattern in settings.models:
            named = [label for label in ordered if _spellings(pattern) & names_of(label, designs[label])]
            matches = named or [label for label in ordered if _matches(pattern, label, designs[label])]
            if not matches:
                every = {name for label in ordered for name in names_of(label, designs[label])}
                raise UserError(f"models= names {pattern!r}, which is not among the scores. {suggest(pattern, every)}")
            chosen += [label for label in matches if label not in chosen]
    if len(chosen) < 2:
        raise UserError(f"Only one design to compare: {chosen[0]}. A paired test needs two; widen models= or scores=.")
    return chosen


def _matches(pattern: str, label: str, design: Design) -> bool:
    names, spellings = names_of(label, design), _spellings(pattern)
    globbed = any(fnmatchcase(name, spelling) for name in names for spelling in spellings)
    return bool(spellings & names) or (globbed and (design.trained or "untrained" in pattern))


def _spellings(name: str) -> set[str]:
    """Return a name as it is, and as mteb writes the hub's organisation/model in folders: organisation__model."""
    return {name, name.replace("/", "__", 1)}


def _check_every_seed(frame: pd.DataFrame, designs: list[str], wanted: Sequence[str]) -> None:
    """Raise UserError where a design compared lacks a seed of `wanted`."""
    have = {design: set(rows) for design, rows in frame.groupby("design")["seed"]}
    lacking = {design: [seed for seed in wanted if seed not in have[design]] for design in designs}
    lines = [f"{design} lacks seed {', '.join(absent)}" for design, absent in lacking.items() if absent]
    if lines:
        raise UserError(f"{listed(lines, 4)}. Train and score it, or leave the seed out of seeds=.")


def _control(designs: dict[str, Design], compared: Sequence[str], name: str) -> str:
    """Return the label of the design that `against=` names, "" where it names none."""
    label = next((label for label in compared if _spellings(name) & names_of(label, designs[label])), None)
    if name and label is None:
        raise UserError(f"against={name} is not among the designs compared. {suggest(name, compared)}")
    return label or ""


def _rows(frame: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Return the scores of the types and tasks asked for. Raises UserError for one that no score has."""
    for key, column, patterns in (("types", "type", settings.types), ("tasks", "task", settings.tasks)):
        names, wanted = set(frame[column]), set()
        for pattern in patterns:
            matches = {name for name in names if fnmatchcase(name.lower(), pattern.lower())}
            if not matches:
                raise UserError(f"{key}= names {pattern!r}, which no score has. {suggest(pattern, names)}")
            wanted |= matches
        frame = frame[frame[column].isin(wanted)] if patterns else frame
    return frame
