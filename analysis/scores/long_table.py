"""The long table: one row per (design, seed, task), from all sources, checked."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from analysis.manifests.designs import Design, Row, ScoreSource
from analysis.scores.labels import gathered, labels, usual_note
from analysis.scores.task_types import type_of
from analysis.settings import public_path
from cli.errors import UserError

COLUMNS = ["design", "model", "seed", "task", "type", "score", "split", "subsets", "source"]
NAMED_SUBSETS = 60
PERCENT_FROM = 1.5  # no score in 0-1 exceeds it, and a whole table in percent never stays below


@dataclass(frozen=True)
class Scores:
    """`frame` has the columns `COLUMNS`, score in -1..1; `designs`: label -> design, in file order.

    `rows`: those of the sources; the index of `frame` is the position in it.
    """

    frame: pd.DataFrame
    designs: dict[str, Design]
    notes: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    naming: tuple[str, ...] = ()  # the note on what names leave out


def normalise(source: ScoreSource, scale: str) -> ScoreSource:
    """Return the source with its scores between -1 and 1 (correlations may be negative).

    `scale`: "1" or "100" says what the source is in; "auto" recognises it by its largest score.
    Raises UserError for a score outside the scale, or a model or task that seems to be on the other one.
    """
    usable = [row for row in source.rows if not row.problem]
    top = max((abs(row.score) for row in usable), default=0.0)
    percent = scale == "100" or (scale == "auto" and top > PERCENT_FROM)
    limit = 100.0 if percent else 1.0
    outside = next((row for row in usable if abs(row.score) > limit), None)
    if outside:
        raise UserError(
            f"{outside.source}: the score of {outside.task} for {outside.model} is {outside.score:g}, outside"
            f" {-limit:g} to {limit:g}. Mend it, or say the scale with scale=1 or scale=100."
        )
    if percent:
        if scale == "auto":
            _refuse_mixed(usable)
        note = f"{source.name}: scores are 0-100 (largest {top:g}) and were divided by 100."
        rows = [replace(row, score=row.score / 100.0) for row in source.rows]
        return replace(source, rows=rows, notes=[*source.notes, note])
    if scale != "auto" or all(design.runs for design in source.designs.values()):  # our own evaluation writes 0-1
        return source
    return replace(source, notes=[*source.notes, f"{source.name}: scores were read as 0-1 (largest {top:g})."])


def _refuse_mixed(usable: list[Row]) -> None:
    """Refuse a model or a task with several scores, none above 1, in a table of percent: it is on the other scale."""
    for what in ("model", "task"):
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in usable:
            groups[getattr(row, what)].append(row)
        for name, rows in groups.items():
            if len(rows) > 1 and all(abs(row.score) <= 1.0 for row in rows):
                top = max(usable, key=lambda row: abs(row.score))
                raise UserError(
                    f"{top.source}: the score of {top.task} for {top.model} is {top.score:g}, so scores should be"
                    f" 0-100, but all {len(rows)} of {what} {name} lie within 1: the scales are mixed. Mend the one or"
                    " the others, or say scale=1 or scale=100."
                )


def join(sources: list[ScoreSource], own_types: dict[str, str], allow: tuple[str, ...] = ()) -> Scores:
    """Join the sources into one table. allow: keys in which the seeds of one design may differ.

    Raises UserError for a score that is there twice, or a task of unknown type.
    """
    designs: dict[str, Design] = {}
    sources = _told_apart(sources)
    for model, design in (item for source in sources for item in source.designs.items()):
        known = designs.get(model)
        stays = known and (known.runs or not design.factors)
        designs[model] = replace(known, runs=(*known.runs, *design.runs)) if known and stays else design
    label = labels(designs.values(), allow)
    types = _types(sources, own_types)
    seen: dict[tuple[str, str, str], Row] = {}
    for row in (row for source in sources for row in source.rows):
        other = seen.setdefault((row.model, row.seed, row.task), row)
        if other is not row:
            seed = f" (seed {row.seed})" if row.seed else ""
            raise UserError(
                f"{row.model}{seed} has two scores on {row.task}: {other.source} and {row.source}. Remove one of them."
            )
    notes = [note for source in sources for note in source.notes]
    rows = tuple(seen.values())
    records = [
        (label[r.model], r.model, r.seed, r.task, types[r.task], r.score, r.split, r.subsets, r.source) for r in rows
    ]
    frame, naming = pd.DataFrame(records, columns=COLUMNS), tuple(usual_note(designs.values()))
    return Scores(frame, gathered(designs, label), tuple(notes), rows, naming)


def _told_apart(sources: list[ScoreSource]) -> list[ScoreSource]:
    """Add its path to a model of other factors than an earlier source's of that name: two bases under one study."""
    known: dict[str, dict[str, str]] = {}
    apart = []
    for source in sources:
        new = {
            name: f"{name} ({source.path})"
            for name, design in source.designs.items()
            if design.factors and known.setdefault(name, design.factors) != design.factors
        }
        designs = {new.get(name, name): replace(d, model=new.get(name, name)) for name, d in source.designs.items()}
        rows = [replace(row, model=new[row.model]) if row.model in new else row for row in source.rows]
        apart.append(replace(source, designs=designs, rows=rows) if new else source)
    return apart


def with_factors(frame: pd.DataFrame, designs: Mapping[str, Design]) -> pd.DataFrame:
    """Return the long table with a column per factor, but none of a name it has, and with `training` where untrained
    references are among the designs: `read_csv` reads them again."""
    names = dict.fromkeys(name for design in designs.values() for name in design.factors if name not in frame)
    columns = {name: [designs[d].factors.get(name, "") for d in frame["design"]] for name in names}
    if not all(design.trained for design in designs.values()):
        columns["training"] = ["after" if designs[d].trained else "before" for d in frame["design"]]
    return frame.assign(**columns)


def scores_for_file(frame: pd.DataFrame, scores: Sequence[Path]) -> pd.DataFrame:
    """Return the long table with the number of subsets in place of names that would fill a page, and with sources
    named by the public paths of `scores`, below which they lie."""
    public = {str(path): public_path(path) for path in scores if path.is_absolute()}

    def named(source: str) -> str:
        whole = next((path for path in public if source.startswith(path)), "")
        return public[whole] + source.removeprefix(whole) if whole else source

    return frame.assign(subsets=frame["subsets"].map(counted), source=frame["source"].map(named))


def counted(subsets: str) -> str:
    """Return the names of subsets as `Row` has them, or their number where they are many: "376 subsets"."""
    count = subsets.count(";") + 1
    return subsets if count <= NAMED_SUBSETS else f"{count} subsets"


def _types(sources: list[ScoreSource], own_types: dict[str, str]) -> dict[str, str]:
    """Return task -> type over all sources; two that disagree are refused."""
    known = {task: kind for source in sources for task, kind in source.types.items()} | own_types
    types: dict[str, str] = {}
    for row in (row for source in sources for row in source.rows):
        kind = row.type or types.get(row.task) or type_of(row.task, known, row.source)
        other = types.setdefault(row.task, kind)
        if other != kind:
            raise UserError(f"{row.source}: task {row.task} has the type {kind}, elsewhere {other}. Mend one.")
    return types
