"""The designs and tasks that `models=`, `seeds=`, `types=` and `tasks=` choose, and their order."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import pandas as pd

from analysis.manifests.designs import UNTRAINED, Design, ScoreSource
from analysis.names import by_number, listed, suggest
from analysis.scores.labels import config_order, names_of
from analysis.scores.long_table import Scores
from analysis.settings import Settings
from cli.errors import UserError


def renamed(scores: Scores, names: dict[str, str]) -> Scores:
    """Return the scores with designs under the new `names`, and their untrained references named after them.

    Every later step knows a design by its new name, so no rendering can miss one; `Design.own_name` is for the files
    of data. Raises UserError for a name that no design has, and where two designs would get one name.
    """
    new: dict[str, str] = {}
    for name, given in names.items():
        label = next((label for label, design in scores.designs.items() if name in names_of(label, design)), None)
        if label is None:
            raise UserError(f"rename= names {name!r}, which is not among the scores. {suggest(name, scores.designs)}")
        new[label] = given
    twins = {f"{label}{UNTRAINED}": f"{given}{UNTRAINED}" for label, given in new.items()}
    new = {label: given for label, given in {**new, **twins, **new}.items() if label in scores.designs}
    owner = {label: label for label in scores.designs}  # of each name, old or new: no two designs may share one
    for label, given in new.items():
        if owner.setdefault(given, label) != label:
            raise UserError(f"rename= gives {label} the name {given!r}, which {owner[given]} has. Give each its own.")
    designs = {
        new.get(label, label): replace(design, own_name=label) if label in new else design
        for label, design in scores.designs.items()
    }
    named = scores.frame["design"].map(lambda label: new.get(label, label))
    return replace(scores, frame=scores.frame.assign(design=named), designs=designs)


def keep_seeds(source: ScoreSource, wanted: tuple[str, ...]) -> ScoreSource:
    """Return the source with the rows of the seeds `wanted` alone and the designs that have any; () keeps all."""
    if not wanted:
        return source
    rows = [row for row in source.rows if row.seed in wanted]
    models = {row.model for row in rows}
    designs = {model: design for model, design in source.designs.items() if model in models}
    other = source.other_seeds | {row.seed for row in source.rows if row.seed not in wanted}
    without = [model for model in source.designs if model not in models]
    return replace(source, rows=rows, designs=designs, other_seeds=other, without_seeds=without)


def check_seeds(sources: Sequence[ScoreSource], wanted: tuple[str, ...]) -> None:
    """Raise UserError for a seed of `wanted` that no score has; it names the seeds that are there."""
    seeds = {row.seed for source in sources for row in source.rows}
    absent = [seed for seed in wanted if seed not in seeds]
    if absent:
        known = seeds.union(*(source.other_seeds for source in sources)) - {""}
        state = f"have {listed(by_number(known))}" if known else "name no seeds"
        raise UserError(f"seeds= names {listed(absent)}, which no score has. The scores {state}.")


def without_seeds(sources: Sequence[ScoreSource], settings: Settings) -> tuple[str, ...]:
    """Return a note on designs that have none of the seeds asked for, where `models=` does not say which are wanted."""
    models = [] if settings.models else [model for source in sources for model in source.without_seeds]
    return (f"Left out, since they have no score with a seed of seeds=: {listed(models)}.",) if models else ()


def check_every_seed(frame: pd.DataFrame, designs: list[str], wanted: tuple[str, ...]) -> None:
    """Raise UserError where a design compared lacks a seed of `wanted`. frame: the long table."""
    have = {design: set(rows) for design, rows in frame.groupby("design")["seed"]}
    lacking = {design: [seed for seed in wanted if seed not in have[design]] for design in designs}
    lines = [f"{design} lacks seed {', '.join(absent)}" for design, absent in lacking.items() if absent]
    if lines:
        raise UserError(f"{listed(lines, 4)}. Train and score it, or leave the seed out of seeds=.")


def choose_designs(
    designs: dict[str, Design], patterns: tuple[str, ...], order: dict[str, list[str]], fewest: int = 2
) -> list[str]:
    """Return the labels to compare.

    Without patterns: all trained designs (or all, where none is trained), in config order. With patterns: in the
    order given, the matches of a glob in config order; a glob takes untrained references only if it says "untrained".
    Raises UserError for a pattern without a match, or fewer designs than `fewest`, 1 or 2.
    """
    ordered = config_order(designs, order)
    chosen = [label for label in ordered if designs[label].trained] or ordered
    if patterns:
        chosen = []
        for pattern in patterns:
            matches = [label for label in ordered if _matches(pattern, label, designs[label])]
            if not matches:
                every = {name for label in ordered for name in names_of(label, designs[label])}
                raise UserError(f"models= names {pattern!r}, which is not among the scores. {suggest(pattern, every)}")
            chosen += [label for label in matches if label not in chosen]
    if len(chosen) < fewest:
        raise UserError(f"Only one design to compare: {chosen[0]}. A paired test needs two; widen models= or scores=.")
    return chosen


def choose_control(designs: dict[str, Design], chosen: list[str], name: str, whole: list[str]) -> str:
    """Return the label of the design that `against=` names, "" where it names none.

    whole: the designs that were not dropped for a missing task. Raises UserError if unknown or dropped.
    """
    if not name:
        return ""
    label = next((label for label in chosen if _spellings(name) & names_of(label, designs[label])), None)
    if label is None:
        raise UserError(f"against={name} is not among the designs compared. {suggest(name, chosen)}")
    if label not in whole:
        mend = "Choose another, or leave missing=drop_models out."
        raise UserError(f"against={name} lacks tasks and was dropped. {mend}")
    return label


def _matches(pattern: str, label: str, design: Design) -> bool:
    names, spellings = names_of(label, design), _spellings(pattern)
    globbed = any(fnmatchcase(name, spelling) for name in names for spelling in spellings)
    return bool(spellings & names) or (globbed and (design.trained or "untrained" in pattern))


def _spellings(name: str) -> set[str]:
    """Return a name as it is, and as mteb writes the hub's organisation/model in folders: organisation__model."""
    return {name, name.replace("/", "__", 1)}


def keep_tasks(scores: Scores, types: tuple[str, ...], tasks: tuple[str, ...]) -> Scores:
    """Return the scores of the tasks asked for. Raises UserError for a type or task that no score has."""
    frame = scores.frame
    for key, column, patterns in (("types", "type", types), ("tasks", "task", tasks)):
        names, wanted = set(frame[column]), set()
        for pattern in patterns:
            low = pattern.lower()
            matches = {name for name in names if name.lower() == low or fnmatchcase(name.lower(), low)}
            if not matches:
                raise UserError(f"{key}= names {pattern!r}, which no score has. {suggest(pattern, names)}")
            wanted |= matches
        frame = frame[frame[column].isin(wanted)] if patterns else frame
    return replace(scores, frame=frame)
