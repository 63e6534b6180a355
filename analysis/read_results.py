"""An mteb results folder -> rows: results/<model>/<revision>/<task>.json, also .../experiments/<name>/<task>.json."""

import re
from collections import defaultdict
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from analysis.read_manifest import read_manifest
from analysis.read_task import read_task
from analysis.rows import Design, Reading
from analysis.settings import Settings
from analysis.task_types import read_types
from records.errors import UserError

NOT_SCORES = ("model_meta.json", "manifest.json", "tasks.json", "experiment_params.json")
SEED = re.compile(r"seed=(\d+)(?:@.*)?$")


def read_results(path: Path, settings: Settings) -> Reading:
    """Read every score below `path`, which may be the results folder or any folder above it.

    Raises UserError where nothing is found, or where it is not clear which of two folders counts.
    """
    reading = Reading(source=str(path))
    roots = results_roots(path)
    folders = [folder for root in roots for folder in _score_folders(root)]
    for model, found in _by_model(folders).items():
        for folder, design, seed in _one_folder_a_seed(model, found, settings.revision):
            reading.designs[model] = design
            files = _task_files(folder)
            reading.rows += [read_task(f, model, seed, settings.split, settings.subsets) for f in files]
    if not reading.rows:
        raise UserError(
            f"No scores below {path}. Expected results/<model>/<revision>/<task>.json; run evaluate.py or mteb first."
        )
    for place in _places_of_types(path, roots):
        reading.types |= read_types(place)
    return reading


def results_roots(path: Path) -> list[Path]:
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
    found = []
    for revision in sorted(p for p in root.glob("*/*") if p.is_dir()):
        experiments = sorted(p for p in revision.glob("experiments/*") if p.is_dir())
        for folder in [revision, *experiments]:
            if _task_files(folder):
                model = revision.parent.name + ("" if folder == revision else f"/{folder.name}")
                found.append((model, revision, folder))
    return found


def _task_files(folder: Path) -> list[Path]:
    return sorted(f for f in folder.glob("*.json") if f.name not in NOT_SCORES)


Found = list[tuple[Path, Path, Design, str]]


def _by_model(folders: list[tuple[str, Path, Path]]) -> dict[str, Found]:
    """Group the folders by model, in file order, each with its design and seed."""
    models: dict[str, Found] = defaultdict(list)
    for model, revision, folder in folders:
        if (folder / "run" / "manifest.json").exists():
            design, seed = read_manifest(folder / "run" / "manifest.json", model)
        else:
            match = SEED.match(revision.name)
            design, seed = Design(model=model), match.group(1) if match else ""
        models[model].append((revision, folder, design, seed))
    return models


def _one_folder_a_seed(model: str, found: Found, wanted: str) -> list[tuple[Path, Design, str]]:
    """Return the folders that count, at most one a seed; `wanted` decides where a model has several revisions."""
    if wanted and len(found) > 1:
        kept = [item for item in found if item[0].name == wanted or fnmatchcase(item[0].name, wanted)]
        if not kept:
            names = ", ".join(item[0].name for item in found)
            raise UserError(f"{model} has no revision {wanted!r}. It has {names}.")
        found = kept
    seeds: dict[str, Path] = {}
    for _, folder, design, seed in found:
        if seed in seeds:
            what = f"seed {seed} of {design.short}" if seed else f"{model}"
            raise UserError(
                f"Two folders hold {what}: {seeds[seed]} and {folder}."
                " Say which counts with revision=<name>, or move one away."
            )
        seeds[seed] = folder
    parameters = next((d.parameters for _, _, d, _ in found if d.parameters is not None), None)
    return [(folder, replace(design, parameters=parameters), seed) for _, folder, design, seed in found]


def _places_of_types(path: Path, roots: list[Path]) -> list[Path]:
    """Where a tasks.json may lie: beside `results`, in it, or in the folder that was named."""
    folders = [path, *(place for root in roots for place in (root.parent, root))]
    return [f / "tasks.json" for f in dict.fromkeys(folders) if (f / "tasks.json").is_file()]
