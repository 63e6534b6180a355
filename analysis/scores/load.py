"""All sources that `scores=` names -> one long table, on one scale."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from analysis.manifests.designs import RUNNING, Design, design_of, labelled, read_manifest, usual_note
from analysis.names import listed, suggest
from analysis.scores.csv_table import read_csv
from analysis.scores.long_table import Scores, Source, counted, table
from analysis.scores.mteb_results import read_results
from analysis.scores.tasks import Benchmark, benchmark_of, known_types, type_of
from analysis.settings import Settings
from cli.errors import UserError
from records.files import of_file
from records.manifest import HELD_OUT, SEAL

BITS = 8  # of a byte
PERCENT_FROM = 1.5  # no score in 0-1 exceeds it, and a whole table in percent never stays below


def load(settings: Settings) -> Scores:
    """Return the scores of all sources, of the benchmark's tasks, as one table.

    Raises UserError for a source that cannot be read, a score that is there twice, and a task of unknown type.
    """
    benchmark = benchmark_of(settings.benchmark) if settings.benchmark else None
    sources = [_read(path, settings, benchmark) for path in settings.scores]
    sources = [_on_one_scale(_within(source, benchmark) if benchmark else source) for source in sources]
    if all(source.frame.empty for source in sources):
        raise UserError("No score is left of these sources. Change scores= or benchmark=.")
    frame, designs = pd.concat([source.frame for source in sources], ignore_index=True), _designs(sources)
    _check_once(frame)
    _check_factors(settings.factors, designs)
    named = labelled(designs)
    label = {design.model: name for name, design in named.items()}
    types = _types(frame, {task: kind for source in sources for task, kind in source.types.items()})
    frame = frame.assign(design=frame["model"].map(label), type=frame["task"].map(types))
    reading = tuple(note for source in sources for note in source.notes)
    return Scores(frame, named, benchmark, notes=tuple(usual_note(designs.values())), reading=reading)


def _read(path: Path, settings: Settings, benchmark: Benchmark | None) -> Source:
    if _is_run_of_documents(path):
        return _read_held_out(path, settings)
    if path.is_dir():
        return read_results(path, settings, benchmark)
    if settings.split or settings.subsets or settings.revision:
        raise UserError(f"split=, subsets= and revision= choose among files of mteb. Leave them out, or {path} apart.")
    return read_csv(path, settings.factors)


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
    frame = frame.assign(manifest=run.manifest[SEAL])
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


def _on_one_scale(source: Source) -> Source:
    """Return the source with its scores between -1 and 1 (correlations may be negative).

    A source with a score above `PERCENT_FROM` is in percent; a note names tasks there whose scores all lie within 1.
    Raises UserError for a score outside the scale, and for such a model.
    """
    usable = source.frame[source.frame["problem"] == ""]
    sizes = usable["score"].abs()
    top = 0.0 if usable.empty else sizes.max()
    limit = 100.0 if top > PERCENT_FROM else 1.0
    if top > limit:
        row = usable.loc[sizes.idxmax()]
        where = f"{row['source']}: the score of {row['task']} for {row['model']}"
        raise UserError(f"{where} is {row['score']:g}, outside {-limit:g} to {limit:g}. Mend it.")
    if limit == 1:
        return source
    models = sizes.groupby([usable["model"], usable["seed"]], sort=False).max()
    tasks = sizes.groupby(usable["task"], sort=False).max()
    low = models[(models > 0) & (models <= 1)]
    if len(low):
        run = " seed ".join(filter(None, low.index[0]))
        raise UserError(
            f"{source.path}: scores are 0-100 (largest {top:g}), but those of model {run} all lie within 1:"
            " the scales are mixed. Mend the one or the others."
        )
    note = f"{source.path.name}: scores are 0-100 (largest {top:g}) and were divided by 100"
    note += f"; mend those of {listed(tasks.index[tasks <= 1])} if they are 0-1." if (tasks <= 1).any() else "."
    return source.changed(note, frame=source.frame.assign(score=source.frame["score"] / 100.0))


def _designs(sources: Sequence[Source]) -> dict[str, Design]:
    """Return model -> design over all sources; one of them may have more seeds of a model, or its factors."""
    designs: dict[str, Design] = {}
    for model, design in (item for source in sources for item in source.designs.items()):
        known = designs.get(model)
        if known and bool(known.runs) != bool(design.runs):
            raise UserError(f"{model} has scores with manifests and others without. Give the others another name.")
        stays = known and (known.runs or not design.factors)
        designs[model] = replace(known, runs=(*known.runs, *design.runs)) if known and stays else design
    return designs


def _check_once(frame: pd.DataFrame) -> None:
    """Raise UserError for a score that is there twice."""
    twice = frame[frame.duplicated(["model", "seed", "task"], keep=False)]
    if len(twice):
        row = twice.iloc[0]
        both = twice[(twice[["model", "seed", "task"]] == row[["model", "seed", "task"]]).all(axis=1)]["source"]
        seed = f" (seed {row['seed']})" if row["seed"] else ""
        where = f"{both.iloc[0]} and {both.iloc[1]}"
        mend = "Remove one of them, or give studies of other bases other names."
        raise UserError(f"{row['model']}{seed} has two scores on {row['task']}: {where}. {mend}")
    named = frame.groupby("model")["seed"].transform(lambda of: (of != "").any())
    bare = frame[named & (frame["seed"] == "")]
    if len(bare):
        row = bare.iloc[0]
        where = f"{row['source']}: {row['model']} has no seed here and one elsewhere"
        raise UserError(f"{where}. Give each of its scores a seed.")


def _types(frame: pd.DataFrame, own: dict[str, str]) -> dict[str, str]:
    """Return task -> type over all sources; two that disagree are refused. own: those that no column says."""
    types: dict[str, str] = {}
    for row in frame[frame["problem"] == ""].drop_duplicates(["task", "type"]).itertuples():
        kind = row.type or types.get(row.task) or type_of(row.task, own, row.source)
        if kind == "All":
            raise UserError(f"{row.source}: the type All stands for all tasks together. Give {row.task} another type.")
        other = types.setdefault(row.task, kind)
        if other != kind:
            raise UserError(f"{row.source}: task {row.task} has the type {kind}, elsewhere {other}. Mend one.")
    known = known_types() | own
    return {task: known.get(task, "") for task in frame["task"]} | types  # without a score a file may be of anything


def _check_factors(factors: Sequence[str], designs: dict[str, Design]) -> None:
    """Raise UserError for a factor that was asked for and that no csv has as a column (manifests have a check)."""
    known = {*Settings(scores=()).factors, *(name for design in designs.values() for name in design.factors)}
    unknown = [name for name in factors if name not in known]
    if unknown:
        raise UserError(
            f"factors= names {unknown[0]!r}: no manifest stands beside these scores, and no csv has such a column."
            f" {suggest(unknown[0], known)}"
        )
