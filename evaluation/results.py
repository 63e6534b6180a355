"""The results folder in mteb's own layout, and what may be taken for a finished score in it.

<results>/tasks.json                                      type and main score of every task scored here
<results>/results/<study>__<design>/<revision>/<task>.json   mteb's TaskResult
                                              .../model_meta.json, run_settings.jsonl    mteb's own
                                              .../run/manifest.json   the run's manifest and how it was evaluated
"""

import math
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli.errors import UserError
from evaluation.candidates import Candidate
from evaluation.instructions import Instructions
from records.files import alone_in, of_value, read_object, write_json
from records.manifest import MANIFEST_VERSION, check_seal, sealed

MANIFEST = Path("run") / "manifest.json"  # one folder down: mteb takes every .json beside the scores for a score


def revision(candidate: Candidate, fingerprint: str, instructions: Instructions) -> str:
    """Return `seed<n>@<8 hex of the encoder's fingerprint>`, and which instructions where there are any."""
    label = f"-{instructions.label}" if instructions.label else ""
    return f"seed{candidate.manifest['seed']}@{fingerprint[:8]}{label}"


def model_folder(candidate: Candidate) -> Path:
    """Return the folder that mteb makes for a model; its revisions lie below."""
    return candidate.results / "results" / candidate.name.replace("/", "__")


def parts(task: Any) -> list[Any]:
    """Return the tasks of which an aggregate of mteb, such as CQADupstackRetrieval, is the mean.
    Each is scored by itself, so that its draws, its record and its items are those of any other task."""
    return list(getattr(task.metadata, "tasks", None) or ())


def finished(folder: Path, task: Any, record: dict[str, Any] | None = None) -> bool:
    """Tell whether `folder` holds the whole score of `task`.
    A file that a kill left half-written, that scores other data under the same name, or whose scores are not those of
    `record` (`evaluation` of the manifest beside them), is removed. One that lacks some splits or subsets stays: mteb
    adds what is missing."""
    path = folder / f"{task.metadata.name}.json"
    if not path.is_file():
        return False
    result, written = _read(path), (record or {}).get("scores", {}).get(task.metadata.name)
    changed = result is None or written not in (None, of_value(result["scores"]))
    if result is None or changed or result.get("dataset_revision") != task.metadata.revision:
        path.unlink()
        return False
    subsets = [{entry["hf_subset"] for entry in result["scores"].get(split, ())} for split in task.eval_splits]
    return all(_subsets(task) <= of_split for of_split in subsets)


def main_score(folder: Path, task: Any) -> float:
    """Return the mean of `main_score` over the splits and subsets that `task` has, which is mteb's rule.
    The file may hold others, which another command asked for. NaN where one has none."""
    result = _read(folder / f"{task.metadata.name}.json") or {"scores": {}}
    entries = [e for split in task.eval_splits for e in result["scores"].get(split, ())]
    values = [float(e["main_score"]) for e in entries if e["hf_subset"] in _subsets(task)]
    return math.fsum(values) / len(values) if values else math.nan


def _subsets(task: Any) -> set[str]:
    """The subsets that are scored; of an aggregate mteb writes one, whatever its parts have."""
    return {"default"} if task.is_aggregate else set(task.hf_subsets)


def write_manifest(folder: Path, candidate: Candidate, evaluation: dict[str, Any]) -> None:
    """Put the run's manifest beside its scores, with `evaluation`: how it was scored."""
    versioned = {"manifest_version": MANIFEST_VERSION, **candidate.manifest, "evaluation": evaluation}
    write_json(folder / MANIFEST, sealed(versioned))


def written_record(folder: Path) -> dict[str, Any]:
    """Return `evaluation` of the manifest beside the scores; empty where there is none, or one that was edited."""
    manifest = _object(folder / MANIFEST)
    try:
        check_seal(manifest, folder / MANIFEST)
    except UserError:
        return {}
    return dict(manifest["evaluation"])


def digest(folder: Path, task: Any) -> str:
    """Return the sha256 of the scores of a finished task, whenever and however long it was scored."""
    return of_value((_read(folder / f"{task.metadata.name}.json") or {})["scores"])


def describe_tasks(results: Path, tasks: Iterable[Any]) -> None:
    """Add type, main score and source of `tasks` to <results>/tasks.json."""
    path, described = results / "tasks.json", dict[str, Any]()
    for meta in (task.metadata for task in tasks):
        source = meta.description if meta.dataset["path"].startswith("local/") else meta.dataset["path"]
        described[meta.name] = {"type": meta.type, "main_score": meta.main_score, "source": source}
    if described.items() <= _object(path).items():
        return  # the folder may be one to read only
    with alone_in(results, wait=True):  # another command may add its own
        write_json(path, dict(sorted({**_object(path), **described}.items())))


def _read(path: Path) -> dict[str, Any] | None:
    """The TaskResult in `path`; None where it is no whole one."""
    result = _object(path)
    return result if isinstance(result.get("scores"), dict) else None


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in `path`; empty where there is none, or a broken one."""
    with suppress(UserError):
        return read_object(path)
    return {}
