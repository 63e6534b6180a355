"""The long table: one row per (design, seed, task), from all sources, on one scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from analysis.manifests.designs import Design
from analysis.scores.labels import labelled, usual_note
from analysis.scores.source import Source
from analysis.scores.tasks import type_of
from analysis.settings import public_path
from cli.errors import UserError

COLUMNS = ["design", "model", "seed", "task", "type", "score", "split", "subsets", "source"]  # of a file of scores
NAMED_SUBSETS = 60
PERCENT_FROM = 1.5  # no score in 0-1 exceeds it, and a whole table in percent never stays below


@dataclass(frozen=True)
class Scores:
    """`frame` has the columns of `Row` and `design`, score in -1..1; `designs`: label -> design, in file order."""

    frame: pd.DataFrame
    designs: dict[str, Design]
    notes: tuple[str, ...] = ()
    naming: tuple[str, ...] = ()  # the note on what names leave out


def on_one_scale(source: Source, scale: str) -> Source:
    """Return the source with its scores between -1 and 1 (correlations may be negative).

    `scale`: "1" or "100" says what the source is in; "auto" recognises it by its largest score.
    Raises UserError for a score outside the scale, or a model or task that seems to be on the other one.
    """
    usable = source.frame[source.frame["problem"] == ""]
    sizes = usable["score"].abs()
    top = 0.0 if usable.empty else sizes.max()
    percent = scale == "100" or (scale == "auto" and top > PERCENT_FROM)
    limit = 100.0 if percent else 1.0
    if top > limit:
        row = usable.loc[sizes > limit].iloc[0]
        raise UserError(
            f"{row['source']}: the score of {row['task']} for {row['model']} is {row['score']:g}, outside {-limit:g} to"
            f" {limit:g}. Mend it, or say the scale with scale=1 or scale=100."
        )
    if percent:
        if scale == "auto":
            _refuse_mixed(usable)
        note = f"{source.path.name}: scores are 0-100 (largest {top:g}) and were divided by 100."
        return source.changed(note, frame=source.frame.assign(score=source.frame["score"] / 100.0))
    if scale != "auto" or all(design.runs for design in source.designs.values()):  # our own evaluation writes 0-1
        return source
    return source.changed(f"{source.path.name}: scores were read as 0-1 (largest {top:g}).")


def _refuse_mixed(usable: pd.DataFrame) -> None:
    """Refuse a model or a task with several scores, none above 1, in a table of percent: it is on the other scale."""
    top = usable.loc[usable["score"].abs().idxmax()]
    for what in ("model", "task"):
        largest = usable["score"].abs().groupby(usable[what], sort=False).agg(["size", "max"])
        mixed = largest[(largest["size"] > 1) & (largest["max"] <= 1.0)]
        if len(mixed):
            raise UserError(
                f"{top['source']}: the score of {top['task']} for {top['model']} is {top['score']:g}, so scores should"
                f" be 0-100, but all {mixed['size'].iloc[0]} of {what} {mixed.index[0]} lie within 1: the scales are"
                " mixed. Mend the one or the others, or say scale=1 or scale=100."
            )


def join(sources: Sequence[Source], own_types: dict[str, str]) -> Scores:
    """Join the sources into one table. Raises UserError for a score that is there twice, or a task of unknown type."""
    designs: dict[str, Design] = {}
    for model, design in (item for source in sources for item in source.designs.items()):
        known = designs.get(model)
        stays = known and (known.runs or not design.factors)
        designs[model] = replace(known, runs=(*known.runs, *design.runs)) if known and stays else design
    frame = pd.concat([source.frame for source in sources], ignore_index=True)
    twice = frame[frame.duplicated(["model", "seed", "task"], keep=False)]
    if len(twice):
        row = twice.iloc[0]
        both = twice[(twice[["model", "seed", "task"]] == row[["model", "seed", "task"]]).all(axis=1)]["source"]
        seed = f" (seed {row['seed']})" if row["seed"] else ""
        where = f"{both.iloc[0]} and {both.iloc[1]}"
        mend = "Remove one of them, or give studies of other bases other names."
        raise UserError(f"{row['model']}{seed} has two scores on {row['task']}: {where}. {mend}")
    named = labelled(designs)
    label = {design.model: name for name, design in named.items()}
    types = _types(frame, {task: kind for source in sources for task, kind in source.types.items()} | own_types)
    frame = frame.assign(design=frame["model"].map(label), type=frame["task"].map(types))
    notes = tuple(note for source in sources for note in source.notes)
    return Scores(frame, named, notes, tuple(usual_note(designs.values())))


def _types(frame: pd.DataFrame, known: dict[str, str]) -> dict[str, str]:
    """Return task -> type over all sources; two that disagree are refused."""
    types: dict[str, str] = {}
    for row in frame.drop_duplicates(["task", "type"]).itertuples():
        kind = row.type or types.get(row.task) or type_of(row.task, known, row.source)
        other = types.setdefault(row.task, kind)
        if other != kind:
            raise UserError(f"{row.source}: task {row.task} has the type {kind}, elsewhere {other}. Mend one.")
    return types


def with_factors(frame: pd.DataFrame, designs: Mapping[str, Design]) -> pd.DataFrame:
    """Return the long table with a column per factor, but none of a name it has, and with `training` where untrained
    references are among the designs: `read_csv` reads them again."""
    names = dict.fromkeys(name for design in designs.values() for name in design.factors if name not in frame)
    columns = {name: [designs[d].factors.get(name, "") for d in frame["design"]] for name in names}
    if not all(design.trained for design in designs.values()):
        columns["training"] = ["after" if designs[d].trained else "before" for d in frame["design"]]
    return frame.assign(**columns)


def scores_for_file(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the long table with the number of subsets in place of names that would fill a page, and with public
    sources, so that two clones write the same."""
    sources = frame["source"].map(lambda source: public_path(Path(source)))
    return frame[COLUMNS].assign(subsets=frame["subsets"].map(counted), source=sources)


def counted(subsets: str) -> str:
    """Return the names of subsets as `Row` has them, or their number where they are many: "376 subsets"."""
    count = subsets.count(";") + 1
    return subsets if count <= NAMED_SUBSETS else f"{count} subsets"
