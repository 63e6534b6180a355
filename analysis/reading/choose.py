"""`models=`, `types=`, `tasks=`: what is compared, and in which order."""

from dataclasses import replace
from fnmatch import fnmatchcase

from analysis.names import suggest
from analysis.reading.labels import names_of
from analysis.reading.order import config_order
from analysis.reading.rows import Design
from analysis.reading.scores import Scores
from records.errors import UserError


def choose_designs(designs: dict[str, Design], patterns: tuple[str, ...], order: dict[str, list[str]]) -> list[str]:
    """Return the labels to compare.

    Without patterns: all trained designs (or all, where none is trained), in config order. With patterns: in the
    order given, the matches of a glob in config order; a glob takes untrained references only if it says "untrained".
    Raises UserError for a pattern without a match, or fewer than two designs.
    """
    ordered = config_order(designs, order)
    chosen = [label for label in ordered if designs[label].trained] or ordered
    if patterns:
        chosen = []
        for pattern in patterns:
            found = [label for label in ordered if _matches(pattern, label, designs[label])]
            if not found:
                every = {name for label in ordered for name in names_of(label, designs[label])}
                raise UserError(f"models= names {pattern!r}, which is not among the scores. {suggest(pattern, every)}")
            chosen += [label for label in found if label not in chosen]
    if len(chosen) < 2:
        raise UserError(f"Only one design to compare: {chosen[0]}. A paired test needs two; widen models= or scores=.")
    return chosen


def choose_control(designs: dict[str, Design], chosen: list[str], name: str, whole: list[str]) -> str:
    """Return the label of the design that `against=` names, "" where it names none.

    whole: the designs that were not dropped for a missing task. Raises UserError if unknown or dropped.
    """
    found = [label for label in chosen if _spellings(name) & names_of(label, designs[label])]
    if name and not found:
        raise UserError(f"against={name} is not among the designs compared. {suggest(name, chosen)}")
    if found and found[0] not in whole:
        raise UserError(
            f"against={name} lacks tasks and was dropped. Choose another, or leave missing=drop_models out."
        )
    return found[0] if found else ""


def _matches(pattern: str, label: str, design: Design) -> bool:
    names = names_of(label, design)
    if _spellings(pattern) & names:
        return True
    globbed = any(fnmatchcase(name, own) for name in names for own in _spellings(pattern))
    return globbed and (design.trained or "untrained" in pattern)


def _spellings(name: str) -> set[str]:
    """A name as it is, and as mteb writes the hub's organisation/model in folders: organisation__model."""
    return {name, name.replace("/", "__", 1)}


def keep_tasks(scores: Scores, types: tuple[str, ...], tasks: tuple[str, ...]) -> Scores:
    """Return the scores of the tasks asked for. Raises UserError for a type or task that no score has."""
    frame = scores.frame
    if types:
        frame = frame[frame["type"].isin(_resolve("types", types, set(frame["type"])))]
    if tasks:
        frame = frame[frame["task"].isin(_resolve("tasks", tasks, set(frame["task"])))]
    return replace(scores, frame=frame)


def _resolve(key: str, patterns: tuple[str, ...], names: set[str]) -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        kept = {n for n in names if n.lower() == pattern.lower() or fnmatchcase(n.lower(), pattern.lower())}
        if not kept:
            raise UserError(f"{key}= names {pattern!r}, which no score has. {suggest(pattern, names)}")
        found |= kept
    return found
