"""All sources that `scores=` names -> one long table."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis.manifests.designs import RUNNING, design_of, read_manifest
from analysis.names import listed, suggest
from analysis.scores.choose import of_seeds
from analysis.scores.csv_table import read_csv
from analysis.scores.long_table import Scores, counted, join, on_one_scale
from analysis.scores.mteb_results import read_results
from analysis.scores.source import Source, table
from analysis.scores.tasks import Benchmark, benchmark_of, read_types
from analysis.settings import Settings
from cli.errors import UserError
from records.fingerprint import of_file
from records.manifest import HELD_OUT

BITS = 8  # of a byte


def load(settings: Settings) -> Scores:
    """Return the scores of all sources, of the benchmark's tasks and the seeds asked for, as one table.

    Raises UserError for a source that cannot be read, and for a seed that no score has.
    """
    benchmark = benchmark_of(settings.benchmark) if settings.benchmark else None
    own_types = read_types(settings.task_types) if settings.task_types else {}
    sources = [_read(path, settings, own_types, benchmark) for path in settings.scores]
    sources = [_within(source, benchmark) for source in sources] if benchmark else sources
    if all(source.frame.empty for source in sources):
        raise UserError("No score is left of these sources. Change scores= or benchmark=.")
    scores = join([on_one_scale(source, settings.scale) for source in sources], own_types)
    _check_factors(settings.factors, scores)
    return of_seeds(scores, settings)


def _read(path: Path, settings: Settings, own_types: dict[str, str], benchmark: Benchmark | None) -> Source:
    if _is_run_of_documents(path):
        return _read_held_out(path, settings)
    if path.is_dir():
        return read_results(path, settings, benchmark)
    beside = path.parent / "tasks.json"
    types = read_types(beside) if beside.is_file() else {}
    if settings.split or settings.subsets or settings.revision:
        raise UserError(f"split=, subsets= and revision= choose among files of mteb. Leave them out, or {path} apart.")
    return read_csv(path, types | own_types, settings.factors).changed(types=types)


def _is_run_of_documents(path: Path) -> bool:
    """Tell whether `path` is the folder of a run that scores documents, finished or not."""
    manifest = path / "manifest.json"
    return manifest.is_file() and read_manifest(manifest).manifest["config"]["objective"]["name"] == "next_token"


def _read_held_out(path: Path, settings: Settings) -> Source:
    """Read a run folder. Task: `<domain>/<document>`; type: domain; score: 1 - bits per byte / 8, the space saved.

    Raises UserError where the file is not there, or not the one that the run wrote.
    """
    run, file, model = read_manifest(path / "manifest.json"), path / HELD_OUT, "/".join(path.absolute().parts[-3:-1])
    if run.manifest["status"] == RUNNING:
        return Source(path, table([]), {}, notes=(f"Left out, since the run was not finished: {path}.",))
    if not file.is_file() or of_file(file) != run.manifest.get("files", {}).get(HELD_OUT):
        raise UserError(f"{file} is not the file that the run wrote. Delete the run folder and train it again.")
    documents = pd.read_csv(file, dtype={"document": str}, float_precision="round_trip")
    frame = pd.DataFrame({"task": documents["domain"] + "/" + documents["document"], "type": documents["domain"]})
    frame = frame.assign(model=model, seed=run.seed, score=1 - documents["bits_per_byte"] / BITS, source=str(file))
    return Source(path, table(frame), {model: design_of([run], model, settings.factors)})


def _within(source: Source, benchmark: Benchmark) -> Source:
    """Return the source with the tasks of the benchmark alone; a note counts the others.

    Raises UserError for a score that says a split or subsets (a csv may) other than those of the benchmark.
    """
    frame = source.frame[source.frame["task"].isin(benchmark.tasks)]
    for what in ("split", "subsets"):
        for row in frame[frame[what] != ""].drop_duplicates(["task", what]).to_dict("records"):
            definition, names = benchmark.tasks[row["task"]], row[what]
            asked = definition.splits if what == "split" else definition.subsets
            if set(names.split(";")) != set(asked) and names != counted(";".join(asked)):
                raise UserError(
                    f"{row['source']}: the score of {row['task']} for {row['model']} is of the {what}"
                    f" {listed(names.split(';'), 4)}, and {benchmark.name} scores {listed(asked, 4)}. Leave it out."
                )
    gone, name = sorted(set(source.frame["task"]) - set(benchmark.tasks)), source.path.name
    notes = (
        [f"{name}: {len(gone)} tasks that are not of {benchmark.name} were left out: {listed(gone)}."] if gone else []
    )
    if not frame.empty and not (frame["split"].any() or frame["problem"].any()):
        notes.append(f"{name} does not say of which split and subsets its scores are: taken for {benchmark.name}'s.")
    return source.changed(*notes, frame=frame)


def _check_factors(factors: Sequence[str], scores: Scores) -> None:
    """Raise UserError for a factor that was asked for and that no csv has as a column (manifests have a check)."""
    known = {*Settings(scores=()).factors, *(name for design in scores.designs.values() for name in design.factors)}
    unknown = [name for name in factors if name not in known]
    if unknown:
        raise UserError(
            f"factors= names {unknown[0]!r}: no manifest stands beside these scores, and no csv has such a column."
            f" {suggest(unknown[0], known)}"
        )
