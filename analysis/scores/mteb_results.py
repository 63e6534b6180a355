"""Rows of an mteb results folder: results/<model>/<revision>/<task>.json, also .../experiments/<name>/<task>.json."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from analysis.manifests.designs import OURS, RUNNING, Design, Run, ScoreSource, design_of, no_manifest, read_manifest
from analysis.scores.definitions import Benchmark
from analysis.scores.mteb_task import read_task
from analysis.scores.task_types import read_types
from analysis.settings import Settings
from cli.errors import UserError

NOT_SCORES = ("model_meta.json", "manifest.json", "tasks.json", "experiment_params.json")
SEED = re.compile(r"seed(\d+)(?:@.*)?$")


def read_results(path: Path, settings: Settings, benchmark: Benchmark | None = None) -> ScoreSource:
    """Read every score below `path`, which may be the results folder or any folder above it.

    benchmark: whose splits and subsets count; a score that cannot be used is a row with its problem.
    Raises UserError where nothing is found, or where it is not clear which of two folders counts.
    """
    source = ScoreSource(str(path))
    read = partial(read_task, split=settings.split, subsets=settings.subsets, benchmark=benchmark)
    roots = _results_roots(path)
    models, unfinished = _by_model(folder for root in roots for folder in _score_folders(root))
    for model, every in models.items():
        wanted_seeds = [item for item in every if not settings.seeds or item.seed in settings.seeds]
        source.other_seeds |= {item.seed for item in every if item not in wanted_seeds}
        if not wanted_seeds:
            trained = any(item.run is None or item.run.trained for item in every)
            source.without_seeds += [model.partition("__")[2] or model] if trained else []
            continue
        kept = _one_folder_per_seed(model, wanted_seeds, settings.revision)
        source.designs[model] = _design(model, kept, settings.factors)
        source.rows += [
            read(file, model, item.seed, written=item.written.get(file.stem))
            for item in kept
            for file in _task_files(item.path)
        ]
    halves = [str(item.path) for item in unfinished if not settings.seeds or item.seed in settings.seeds]
    left_out = [f"Left out, since the run was not finished: {', '.join(halves)}."] if halves else []
    if not source.rows and not source.other_seeds:
        expected = "Expected results/<model>/<revision>/<task>.json; run evaluate.py or mteb first."
        raise UserError(f"No scores below {path}. {' '.join(left_out) or expected}")
    source.notes += left_out
    for folder in dict.fromkeys([path, *(place for root in roots for place in (root.parent, root))]):
        if (folder / "tasks.json").is_file():
            source.types |= read_types(folder / "tasks.json")
    return source


def _results_roots(path: Path) -> list[Path]:
    """Return the outermost folders named `results` in `path` (itself first), or `path` where none is so named."""
    if path.name == "results" and _score_folders(path):
        return [path]
    inside: list[Path] = []
    for folder in sorted(p for p in path.rglob("results") if p.is_dir()):
        if _score_folders(folder) and not any(root in folder.parents for root in inside):
            inside.append(folder)
    return inside or [path]


def _score_folders(root: Path) -> list[tuple[str, Path, Path]]:
    """Return (model name, revision folder, folder that holds the task files), sorted by path."""
    score_folders = []
    for folder in [root, *(p for p in root.iterdir() if p.is_dir())]:
        os.scandir(folder).close()  # what cannot be read is said, where a glob would leave a design out
    for revision in sorted(p for p in root.glob("*/*") if p.is_dir()):
        experiments = sorted(p for p in revision.glob("experiments/*") if p.is_dir())
        for folder in [revision, *experiments]:
            if _task_files(folder):
                model = revision.parent.name + ("" if folder == revision else f"/{folder.name}")
                score_folders.append((model, revision, folder))
    return score_folders


def _task_files(folder: Path) -> list[Path]:
    return sorted(f for f in folder.glob("*.json") if f.name not in NOT_SCORES)


@dataclass(frozen=True)
class _Folder:
    """A folder of scores; `run` is None for a foreign one."""

    revision: str
    path: Path
    run: Run | None
    seed: str

    @property
    def written(self) -> dict[str, str]:
        """Task -> sha256 of its scores, as far as the manifest beside them says so."""
        evaluation = self.run.manifest.get("evaluation") if self.run else None
        return dict((evaluation or {}).get("scores", {}))


def _by_model(folders: Iterable[tuple[str, Path, Path]]) -> tuple[dict[str, list[_Folder]], list[_Folder]]:
    """Return model -> its folders, in file order, and those that stand for a run that is not finished."""
    models: dict[str, list[_Folder]] = defaultdict(list)
    unfinished: list[_Folder] = []
    for model, revision, folder in folders:
        manifest, of_seed = folder / "run" / "manifest.json", SEED.match(revision.name)
        run = read_manifest(manifest) if manifest.exists() else None
        if not run and OURS.match(revision.name):
            raise no_manifest(folder)
        place = unfinished if run and run.manifest["status"] == RUNNING else models[model]
        seed = run.seed if run else (of_seed[1] if of_seed else "")
        place.append(_Folder(revision.name, folder, run, seed))
    return models, unfinished


def _one_folder_per_seed(model: str, folders: list[_Folder], wanted: str) -> list[_Folder]:
    """Return the folders that count, at most one per seed; `wanted` decides where a model has several revisions."""
    if wanted and len(folders) > 1:
        kept = [item for item in folders if item.revision == wanted or fnmatchcase(item.revision, wanted)]
        if not kept:
            names = ", ".join(item.revision for item in folders)
            raise UserError(f"{model} has no revision {wanted!r}. It has {names}.")
        folders = kept
    seeds: dict[str, Path] = {}
    for item in folders:
        first = seeds.setdefault(item.seed, item.path)
        if first != item.path:
            what = f"seed {item.seed} of {model.partition('__')[2] or model}" if item.seed else model
            raise UserError(
                f"Two folders hold {what}: {first} and {item.path}."
                " Say which counts with revision=<name>, or move one away."
            )
    return folders


def _design(model: str, folders: list[_Folder], factors: tuple[str, ...]) -> Design:
    """Return the design of a model's folders. Raises UserError where only some of them have a manifest."""
    runs = [item.run for item in folders if item.run]
    if runs and len(runs) < len(folders):
        raise no_manifest(next(item.path for item in folders if not item.run))
    return design_of(runs, model, factors) if runs else Design(model=model)
