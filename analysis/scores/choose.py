"""`models=`, `types=`, `tasks=`: what is compared, and in which order."""

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from analysis.manifests.designs import Design, Reading
from analysis.names import listed, suggest
from analysis.scores.labels import names_of
from analysis.scores.long_table import Scores
from cli.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def config_order(designs: dict[str, Design], order: dict[str, list[str]]) -> list[str]:
    """Return the labels: our own by (pooler, attn) as `order` lists them, then the others in file order.

    Further factors follow by value, numbers as numbers. A pooler or attention that `order` does not list follows
    those it does, by name.
    """
    poolers, attns = order.get("pooler", []), order.get("attn", [])

    def place(item: tuple[int, str]) -> tuple[Any, ...]:
        position, label = item
        d = designs[label]
        if not d.pooler:
            return (True, position)
        return (False, *_rank(d.pooler, poolers), *_rank(d.attn, attns), *map(_natural, d.factors.values()), position)

    return [label for _, label in sorted(enumerate(designs), key=place)]


def _rank(name: str, listed: list[str]) -> tuple[int, str]:
    return (listed.index(name), "") if name in listed else (len(listed), name)


def _natural(value: str) -> tuple[float, str]:
    """Numbers by size, then texts by letter."""
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), value


def keep_seeds(reading: Reading, wanted: tuple[str, ...]) -> Reading:
    """Return the reading with the rows of the seeds `wanted` alone and the designs that have any; () keeps all."""
    if not wanted:
        return reading
    rows = [row for row in reading.rows if row.seed in wanted]
    models = {row.model for row in rows}
    designs = {model: design for model, design in reading.designs.items() if model in models}
    other = reading.other_seeds | {row.seed for row in reading.rows if row.seed not in wanted}
    return replace(reading, rows=rows, designs=designs, other_seeds=other)


def check_seeds(readings: Iterable[Reading], wanted: tuple[str, ...]) -> None:
    """Raise UserError for a seed of `wanted` that no score has; it names the seeds that are there."""
    readings = list(readings)
    found = {row.seed for reading in readings for row in reading.rows}
    absent = [seed for seed in wanted if seed not in found]
    if absent:
        there = found.union(*(reading.other_seeds for reading in readings)) - {""}
        held = f"have {listed(sorted(there, key=lambda s: (len(s), s)))}" if there else "name no seeds"
        raise UserError(f"seeds= names {listed(absent)}, which no score has. The scores {held}.")


def check_every_seed(frame: "pd.DataFrame", designs: list[str], wanted: tuple[str, ...]) -> None:
    """Raise UserError where a design compared lacks a seed of `wanted`. frame: the long table."""
    have = {design: set(rows) for design, rows in frame.groupby("design")["seed"]}
    lacking = {design: [seed for seed in wanted if seed not in have[design]] for design in designs}
    lines = [f"{design} lacks seed {', '.join(absent)}" for design, absent in lacking.items() if absent]
    if lines:
        raise UserError(f"{listed(lines, 4)}. Train and score it, or leave the seed out of seeds=.")


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
