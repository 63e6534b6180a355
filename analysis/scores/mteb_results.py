"""Scores of an mteb results folder: results/<model>/<revision>/<task>.json, also .../experiments/<name>/<task>.json.

The score of a file is the plain mean of `main_score` over the splits and subsets that count.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from analysis.manifests.compared_keys import factor_value
from analysis.manifests.designs import OURS, RUNNING, Design, Run, design_of, no_manifest, read_manifest
from analysis.names import listed
from analysis.scores.long_table import Row, Source, table
from analysis.scores.tasks import Benchmark, definition_of, read_types
from analysis.settings import Settings
from cli.errors import UserError, reading
from records.files import of_value, read_object
from records.manifest import SEAL

NOT_SCORES = ("model_meta.json", "manifest.json", "tasks.json", "experiment_params.json")
SEED = re.compile(r"seed(\d+)(?:@.*)?$")
REMEDY = "It is no result as mteb writes it today: remove the file, or score the task again."
Entries = list[dict[str, Any]]


@dataclass(frozen=True)
class _Folder:
    """A folder of scores; `run` is None for a foreign one."""

    model: str
    revision: str
    path: Path
    run: Run | None
    seed: str

    @property
    def files(self) -> list[tuple[Path, str | None]]:
        """The files of tasks, each with the sha256 of its scores where the manifest beside them states it."""
        evaluation = (self.run.manifest.get("evaluation") if self.run else None) or {}
        files = sorted(f for f in self.path.glob("*.json") if f.name not in NOT_SCORES)
        return [(file, evaluation.get("scores", {}).get(file.stem)) for file in files]


class _NoScoreError(UserError):
    """What counts was not scored, or its score is no number."""


def read_results(path: Path, settings: Settings, benchmark: Benchmark | None = None) -> Source:
    """Read every score below `path`, which may be the results folder or any folder above it.

    benchmark: whose splits and subsets count; a score that cannot be used is a row with its problem.
    Raises UserError where nothing is found, or where it is not clear which of two folders counts.
    """
    roots = [path] if path.name == "results" else [p for p in sorted(path.rglob("results")) if p.is_dir()] or [path]
    models: dict[str, list[_Folder]] = defaultdict(list)
    halves = []
    for folder in (folder for root in roots for folder in _score_folders(root, settings.factors)):
        if not folder.run or folder.run.manifest["status"] != RUNNING:
            models[folder.model].append(folder)
        elif not settings.seeds or folder.seed in settings.seeds:
            halves.append(str(folder.path))
    left_out = [f"Left out, since the run was not finished: {', '.join(halves)}."] if halves else []
    if not models:
        expected = "Expected results/<model>/<revision>/<task>.json; run evaluate.py or mteb first."
        raise UserError(f"No scores below {path}. {' '.join(left_out) or expected}")
    kept = {model: _one_folder_per_seed(model, folders, settings.revision) for model, folders in models.items()}
    read = partial(read_task, split=settings.split, subsets=settings.subsets, benchmark=benchmark)
    every = (folder for folders in kept.values() for folder in folders)
    rows = [
        replace(read(file, of.model, of.seed, written=written), manifest=of.run.manifest[SEAL] if of.run else "")
        for of in every
        for file, written in of.files
    ]
    designs = {model: _design(model, folders, settings.factors) for model, folders in kept.items()}
    beside = dict.fromkeys([path, *(place for root in roots for place in (root.parent, root))])
    files = [folder / "tasks.json" for folder in beside if (folder / "tasks.json").is_file()]
    types = {task: kind for file in files for task, kind in read_types(file).items()}
    return Source(path, table(rows), designs, types, tuple(left_out))


def _score_folders(root: Path, factors: Sequence[str]) -> Iterator[_Folder]:
    """Yield the folders that hold task files, by path: <model>/<revision>, or experiments/<name> below it.

    A run scored in several ways is a model for each, where a factor is a key of evaluation.
    """
    ways = [factor for factor in factors if factor.partition(".")[0] == "evaluation"]
    for revision in sorted(p for p in root.glob("*/*") if p.is_dir()):
        for path in [revision, *sorted(p for p in revision.glob("experiments/*") if p.is_dir())]:
            manifest, of_seed = path / "run" / "manifest.json", SEED.match(revision.name)
            run = read_manifest(manifest) if manifest.exists() else None
            model = revision.parent.name + ("" if path == revision else f"/{path.name}")
            model += "".join(f" {way}={factor_value(run.manifest, way)}" for way in ways if run)
            seed = run.seed if run else (of_seed[1] if of_seed else "")
            folder = _Folder(model, revision.name, path, run, seed)
            if not folder.files:
                continue
            if not run and OURS.match(revision.name):
                raise no_manifest(path)
            yield folder


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
                " Say which counts with revision=<name>, make what differs a factor"
                " (factors=[pooler,attn,evaluation.<key>]), or move one away."
            )
    return folders


def _design(model: str, folders: Sequence[_Folder], factors: tuple[str, ...]) -> Design:
    """Return the design of a model's folders. Raises UserError where only some of them have a manifest."""
    runs = [folder.run for folder in folders if folder.run]
    if runs and len(runs) < len(folders):
        raise no_manifest(next(folder.path for folder in folders if not folder.run))
    return design_of(runs, model, factors) if runs else Design(model=model)


def read_task(
    path: Path,
    model: str,
    seed: str,
    *,
    split: str = "",
    subsets: Sequence[str] = (),
    benchmark: Benchmark | None = None,
    written: str | None = None,
) -> Row:
    """Return the row of one task file, of the scores that the benchmark defines, or of `split` and `subsets` (globs).

    Without these: all subsets of test, where the file has it and mteb's metadata of the task do not name other splits
    alone, or of the only split. The mean over splits and subsets, each (split, subset) counting once, is mteb's own
    rule (`TaskResult.get_score`). A file that cannot be read, that lacks these scores, or where one is no finite
    number, makes a row with a `problem`; so do other scores than those whose sha256 is `written` in the manifest.
    """
    row = Row(model, seed, path.stem, math.nan, str(path))
    try:
        with reading(path, REMEDY):
            result = read_object(path, REMEDY)
            splits: dict[str, Entries] = result.get("scores") or {}
            task, dataset, mteb = (str(result.get(k) or "") for k in ("task_name", "dataset_revision", "mteb_version"))
            row = replace(row, task=task or path.stem, dataset=dataset, mteb=mteb)
            _check(path, splits, written)
            chosen = _chosen(row.task, splits, split, subsets, benchmark)
            values = [_main_score(entry) for entries in chosen.values() for entry in entries]
            names = sorted({_subset(entry) for entries in chosen.values() for entry in entries})
    except _NoScoreError as error:
        return replace(row, problem=f"{path}: {error}. Score the task so, or leave it out with tasks=.")
    except UserError as error:
        return replace(row, problem=str(error))
    return replace(row, score=math.fsum(values) / len(values), split=";".join(chosen), subsets=";".join(names))


def _check(path: Path, splits: dict[str, Entries], written: str | None) -> None:
    """Raise UserError where there are no scores, or others than those written."""
    if not splits:
        raise UserError(f'{path} has no "scores". {REMEDY}')
    if written not in (None, of_value(splits)):
        mend = "Give its evaluate.py command again."
        raise UserError(f"{path} was changed since it was scored: the sha256 of its scores is another. {mend}")


def _chosen(
    task: str, splits: dict[str, Entries], split: str, subsets: Sequence[str], benchmark: Benchmark | None
) -> dict[str, Entries]:
    """Return split -> entries that count."""
    if benchmark and task in benchmark.tasks:
        definition = benchmark.tasks[task]
        chosen = {s: [e for e in splits.get(s, []) if _subset(e) in definition.subsets] for s in definition.splits}
        lacking = [split for split, entries in chosen.items() if len(entries) < len(definition.subsets)]
        if lacking:
            asked = f"{benchmark.name} scores {len(definition.subsets)} subsets of {listed(definition.splits)}"
            raise _NoScoreError(f"{asked}, and of {listed(lacking)} the file lacks some; it has {listed(splits)}")
        return chosen
    name = _pick_split(task, splits, split)
    kept = [e for e in splits[name] if not subsets or any(fnmatchcase(_subset(e), glob) for glob in subsets)]
    if not kept:
        raise _NoScoreError(f"it has no score of these subsets, only {listed(map(_subset, splits[name]), 8)}")
    return {name: kept}


def _pick_split(task: str, splits: dict[str, Entries], wanted: str) -> str:
    if wanted and wanted not in splits:
        raise _NoScoreError(f"there is no split {wanted!r}, only {listed(splits)}")
    definition = definition_of(task)
    known = [wanted] if wanted else [name for name in splits if definition and name in definition.splits]
    known = known or list(splits)
    if "test" not in known and len(known) > 1:
        raise _NoScoreError(f"it has the splits {listed(splits)} and no test, so say split= or benchmark=")
    return "test" if "test" in known else known[0]


def _subset(entry: dict[str, Any]) -> str:
    return str(entry.get("hf_subset", "default"))


def _main_score(entry: dict[str, Any]) -> float:
    value = entry.get("main_score")
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _NoScoreError(f"main_score of subset {_subset(entry)!r} is {value}, not a number")
    return float(value)
