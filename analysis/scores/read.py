"""All sources that `scores=` names -> one long table of what is asked for."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from analysis.manifests.designs import Design, ScoreSource
from analysis.names import listed
from analysis.scores.choose import check_seeds, choose_designs, keep_seeds, keep_tasks, renamed, without_seeds
from analysis.scores.chosen_parts import check_effect, keep_parts
from analysis.scores.csv_table import read_csv
from analysis.scores.definitions import Benchmark, benchmark_of
from analysis.scores.held_out import is_run_of_documents, read_held_out
from analysis.scores.long_table import Scores, join, normalise
from analysis.scores.material import within, without_holes, without_parts
from analysis.scores.missing import complete, policy_for
from analysis.scores.mteb_results import read_results
from analysis.scores.task_types import read_types
from analysis.settings import Settings
from cli.errors import UserError


def read_scores(settings: Settings, benchmark: Benchmark | None) -> Scores:
    """Return the scores of all sources, of the benchmark's tasks and the seeds asked for, as one table."""
    own_types = read_types(settings.task_types) if settings.task_types else {}
    readings = [within(_read(path, settings, own_types, benchmark), benchmark) for path in settings.scores]
    check_seeds(readings, settings.seeds)
    left_out = without_seeds(readings, settings)
    check_effect(readings, settings)
    if benchmark and not any(reading.rows for reading in readings):
        raise UserError(f"No score is of a task of {benchmark.name}. Change benchmark= or scores=, or leave it out.")
    readings = [normalise(reading, settings.scale) for reading in readings if reading.rows or not reading.designs]
    scores = join(readings, own_types, settings.allow)
    _check_factors(settings.factors, scores.designs.values())
    return renamed(replace(scores, notes=(*left_out, *scores.notes)), settings.rename)


def scores_of_each(
    settings: Settings, of: Collection[str] = ()
) -> tuple[pd.DataFrame, dict[str, Design], list[str], list[str]]:
    """Return the long table, designs by label, tasks and notes without any comparison.

    of: labels of the designs to take of those that are there; empty: as `models=` chooses. One design will do, with any
    seeds, and the control rule is not held; the rest is as in `analyse`.
    """
    benchmark = benchmark_of(settings.benchmark) if settings.benchmark else None
    scores = read_scores(settings, benchmark)
    taken = {label: design for label, design in scores.designs.items() if not of or label in of}
    if not taken:
        places, there = listed(map(str, settings.scores)), listed(scores.designs)
        raise UserError(f"{places} has scores of none of {listed(of)}. It has {there}.")
    designs = choose_designs(taken, settings.models, settings.order, fewest=1)
    policy = policy_for(settings.missing, (scores.designs[label] for label in designs))
    frame = keep_tasks(scores, settings.types, settings.tasks).frame
    frame, hole_notes = without_holes(frame[frame["design"].isin(designs)], scores.rows, policy)
    frame, part_notes = without_parts(frame, designs)
    whole = complete(frame, designs, policy)
    frame = frame[frame["design"].isin(whole.designs) & frame["task"].isin(whole.tasks)]
    kept = {label: scores.designs[label] for label in whole.designs}
    return frame, kept, whole.tasks, [*scores.notes, *scores.naming, *hole_notes, *part_notes, *whole.notes]


def _check_factors(factors: tuple[str, ...], designs: Iterable[Design]) -> None:
    """Raise UserError for a factor that was asked for and that no csv has as a column (manifests have a check)."""
    known = {*Settings(scores=()).factors, *(name for design in designs for name in design.factors)}
    unknown = [name for name in factors if name not in known]
    if unknown:
        raise UserError(
            f"factors=[{','.join(unknown)}]: no manifest stands beside these scores, and no csv has such a column. Add"
            " it with the level of each row's model (long form), or leave it out of factors=."
        )


def _read(path: Path, settings: Settings, own_types: dict[str, str], benchmark: Benchmark | None) -> ScoreSource:
    if is_run_of_documents(path):
        return keep_parts(read_held_out(path, settings), settings)
    if path.is_dir():
        return read_results(path, settings, benchmark)
    beside = path.parent / "tasks.json"
    types = read_types(beside) if beside.is_file() else {}
    reading = read_csv(path, types | own_types, settings.factors)
    reading.types |= types
    return keep_parts(keep_seeds(reading, settings.seeds), settings)
