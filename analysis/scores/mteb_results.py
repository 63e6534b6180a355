"""Scores of an mteb results folder: results/<model>/<revision>/<task>.json, also .../experiments/<name>/<task>.json."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from analysis.manifests.designs import OURS, RUNNING, Design, Run, design_of, no_manifest, read_manifest
from analysis.scores.mteb_task import Row, read_task
from analysis.scores.source import Source, table
from analysis.scores.tasks import Benchmark, read_types
from analysis.settings import Settings
from cli.errors import UserError

NOT_SCORES = ("model_meta.json", "manifest.json", "tasks.json", "experiment_params.json")
SEED = re.compile(r"seed(\d+)(?:@.*)?$")


@dataclass(frozen=True)
class _Folder:
    """A folder of scores; `run` is None for a foreign one."""

    model: str
    revision: str
    path: Path
    run: Run | None
    seed: str


def read_results(path: Path, settings: Settings, benchmark: Benchmark | None = None) -> Source:
    """Read every score below `path`, which may be the results folder or any folder above it.

    benchmark: whose splits and subsets count; a score that cannot be used is a row with its problem.
    Raises UserError where nothing is found, or where it is not clear which of two folders counts.
    """
    roots = _results_roots(path)
    found = [folder for root in roots for folder in _score_folders(root)]
    models: dict[str, list[_Folder]] = defaultdict(list)
    halves = []
    for folder in found:
        if not folder.run or folder.run.manifest["status"] != RUNNING:
            models[folder.model].append(folder)
        elif not settings.seeds or folder.seed in settings.seeds:
            halves.append(str(folder.path))
    left_out = [f"Left out, since the run was not finished: {', '.join(halves)}."] if halves else []
    if not models:
        expected = "Expected results/<model>/<revision>/<task>.json; run evaluate.py or mteb first."
        raise UserError(f"No scores below {path}. {' '.join(left_out) or expected}")
    kept = {model: _one_folder_per_seed(model, folders, settings.revision) for model, folders in models.items()}
    rows = [row for folders in kept.values() for folder in folders for row in _rows(folder, settings, benchmark)]
    designs = {model: _design(model, folders, settings.factors) for model, folders in kept.items()}
    beside = dict.fromkeys([path, *(place for root in roots for place in (root.parent, root))])
    files = [folder / "tasks.json" for folder in beside if (folder / "tasks.json").is_file()]
    types = {task: kind for file in files for task, kind in read_types(file).items()}
    return Source(path, table(rows), designs, types, tuple(left_out))


def _results_roots(path: Path) -> list[Path]:
    """Return the folders named `results` in `path`, which may be one, or `path` where none is so named."""
    if path.name == "results":
        return [path]
    return [folder for folder in sorted(path.rglob("results")) if folder.is_dir()] or [path]


def _score_folders(root: Path) -> Iterator[_Folder]:
    """Yield the folders that hold task files, by path: <model>/<revision>, or experiments/<name> below it."""
    models = (model for model in root.iterdir() if model.is_dir())
    for revision in sorted(p for model in models for p in model.iterdir() if p.is_dir()):
        experiments = sorted(p for p in revision.glob("experiments/*") if p.is_dir())
        for path in [revision, *experiments]:
            if _task_files(path):
                model = revision.parent.name + ("" if path == revision else f"/{path.name}")
                yield _folder(model, revision.name, path)


def _folder(model: str, revision: str, path: Path) -> _Folder:
    manifest, of_seed = path / "run" / "manifest.json", SEED.match(revision)
    run = read_manifest(manifest) if manifest.exists() else None
    if not run and OURS.match(revision):
        raise no_manifest(path)
    return _Folder(model, revision, path, run, run.seed if run else (of_seed[1] if of_seed else ""))


def _task_files(folder: Path) -> list[Path]:
    return sorted(f for f in folder.iterdir() if f.suffix == ".json" and f.name not in NOT_SCORES)


def _rows(folder: _Folder, settings: Settings, benchmark: Benchmark | None) -> Iterator[Row]:
    """Yield the scores of a folder. The manifest beside them, if there is one, states the sha256 of each."""
    evaluation = (folder.run.manifest.get("evaluation") if folder.run else None) or {}
    written = evaluation.get("scores", {})
    read = partial(read_task, split=settings.split, subsets=settings.subsets, benchmark=benchmark)
    for file in _task_files(folder.path):
        yield read(file, folder.model, folder.seed, written=written.get(file.stem))


def _one_folder_per_seed(model: str, folders: list[_Folder], wanted: str) -> list[_Folder]:
    """Return the folders that count, at most one per seed; `wanted` decides where a model has several revisions."""
    if wanted and len(folders) > 1:
        kept = [folder for folder in folders if fnmatchcase(folder.revision, wanted)]
        if not kept:
            names = ", ".join(folder.revision for folder in folders)
            raise UserError(f"{model} has no revision {wanted!r}. It has {names}.")
        folders = kept
    seeds: dict[str, Path] = {}
    for folder in folders:
        first = seeds.setdefault(folder.seed, folder.path)
        if first != folder.path:
            what = f"seed {folder.seed} of {model.partition('__')[2] or model}" if folder.seed else model
            raise UserError(
                f"Two folders hold {what}: {first} and {folder.path}."
                " Say which counts with revision=<name>, or move one away."
            )
    return folders


def _design(model: str, folders: Sequence[_Folder], factors: tuple[str, ...]) -> Design:
    """Return the design of a model's folders. Raises UserError where only some of them have a manifest."""
    runs = [folder.run for folder in folders if folder.run]
    if runs and len(runs) < len(folders):
        raise no_manifest(next(folder.path for folder in folders if not folder.run))
    return design_of(runs, model, factors) if runs else Design(model=model)
