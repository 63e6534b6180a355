"""The plan of a command before it runs: its scores, those that exist, the cost of the rest."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.compose import own_keys
from cli.errors import UserError, nearest
from evaluation.candidates.candidates import Candidate, Config
from evaluation.embeddings.store import FOLDER
from evaluation.instructions import read_instructions
from evaluation.plan.speed import rate_of
from evaluation.plan.work import Forecast, forecast
from evaluation.results import MANIFEST, finished, model_folder, read_object
from evaluation.tasks.chosen import TaskSet
from records.manifest import SEAL

MODES = ("auto", "disk", "memory")
SHARE = 10  # of the free disk, auto takes one part in so many


def embedding_place(mode: str, size: int | None, cache_dir: Path) -> tuple[Path | None, str]:
    """Return the folder for embeddings of `size` bytes (None: not known), None for memory, and a sentence for
    people.
    auto is disk where they take at most a tenth of what is free there. Raises `UserError` for another mode, and for
    mode "disk" where they do not fit."""
    check_mode(mode)
    free = free_bytes(cache_dir)
    need = "an unknown size" if size is None else f"at most {in_bytes(size)}"
    room = f"{in_bytes(free)} are free"
    if mode == "disk" and size is not None and size > free:
        raise UserError(f"The embeddings take {need}, and {room} at {cache_dir}. Give embeddings=memory or free some.")
    if mode == "disk" or (mode == "auto" and size is not None and size <= free / SHARE):
        return cache_dir, f"Embeddings: {need} on disk in {cache_dir / FOLDER}, where {room}."
    why = "" if mode == "memory" else f"; on disk they take {need}, and {room} at {cache_dir}"
    return None, f"Embeddings: in memory for this command alone (embeddings={mode}{why})."


def check_mode(mode: str) -> None:
    """Raise `UserError`, with the nearest names, for a mode that there is not."""
    if mode not in MODES:
        raise UserError(f"There is no embeddings={mode}. {nearest(str(mode), MODES)}")


def free_bytes(folder: Path) -> int:
    """Return what is free on the disk of a folder, which need not be there yet."""
    here = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.is_dir())
    return shutil.disk_usage(here).free


def in_bytes(size: float) -> str:
    """A size for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


@dataclass(frozen=True)
class Plan:
    """`text`: for people. `tokens`: of each candidate, None where not known. `cache_dir`: of embeddings, or None."""

    text: str
    tokens: list[int | None]
    cache_dir: Path | None


def make_plan(candidates: Sequence[Candidate], task_set: TaskSet, cfg: Config) -> Plan:
    """Count what is to do; FLOPs and memory under plan=true alone, since they take seconds.
    cfg: the keys cache_dir, embeddings and threads of conf/evaluate.yaml, and devices and plan where they are there."""
    cache_dir = Path(cfg["cache_dir"])
    todo = []
    for candidate in candidates:
        done = finished_names(candidate, task_set)
        todo.append([task for task in task_set.tasks if task.metadata.name not in done])
    left = sum(map(len, todo))
    total = len(candidates) * len(task_set.tasks)
    many = "s" * (len(candidates) > 1)
    first = f"{len(candidates)} encoder{many} x {len(task_set.tasks)} tasks = {total} scores; {total - left} are there."
    if not left:
        return Plan(first, [0 for _ in candidates], embedding_place(cfg["embeddings"], 0, cache_dir)[0])
    forecasts = _forecasts(candidates, todo, task_set)
    known = [f for f in forecasts if f is not None]
    size = sum(f.bytes for f in known) if len(known) == len(forecasts) else None
    place, where = embedding_place(cfg["embeddings"], size, cache_dir)
    tokens = [None if f is None else f.tokens for f in forecasts]
    if size is None:
        return Plan(f"{first} mteb does not say how long the others' texts are. {where}", tokens, place)
    works = _shared(candidates, known)
    texts, runs = sum(work.texts for _, work in works), sum(work.tokens for _, work in works)
    rate = rate_of(cache_dir, candidates[0].manifest["config"], cfg["threads"], cfg.get("devices", 1))
    seconds = runs / rate.tokens
    time = "under a minute" if seconds < 60 else f"at most {in_time(seconds)}"
    lines = [
        first,
        f"To encode: {texts:,} distinct texts, {runs:,} tokens ({known[0].how}).",
        f"Time: {time} of encoding at {rate.tokens:,.0f} tokens/s ({rate.how}); mteb's own work comes on top.",
        *(_cost_lines(works) if cfg.get("plan") and runs else ()),
        where,
    ]
    return Plan("\n".join(lines), tokens, place)


def _forecasts(candidates: Sequence[Candidate], todo: list[list[Any]], task_set: TaskSet) -> list[Forecast | None]:
    """One for each candidate; those that are measured alike and have the same to do are counted once."""
    known: dict[tuple[str, ...], Forecast | None] = {}
    keys = []
    for candidate, tasks in zip(candidates, todo, strict=True):
        mode = candidate.manifest["config"].get("evaluation", {}).get("instructions", "none")
        keys.append((candidate.measured_alike, mode, *(task.metadata.name for task in tasks)))
        if keys[-1] not in known:
            known[keys[-1]] = forecast(candidate.measure(), read_instructions(mode), tasks, task_set)
    return [known[key] for key in keys]


def _shared(candidates: Sequence[Candidate], forecasts: Sequence[Forecast]) -> list[tuple[Candidate, Forecast]]:
    """Return the most that is to do for each checkpoint, whose candidates share their forward passes."""
    most: dict[str, tuple[Candidate, Forecast]] = {}
    for pair in zip(candidates, forecasts, strict=True):
        place = pair[0].checkpoint
        most[place] = max(most.get(place, pair), pair, key=lambda known: known[1].tokens)
    return list(most.values())


def _cost_lines(works: Sequence[tuple[Candidate, Forecast]]) -> list[str]:
    """The lines on FLOPs and memory."""
    from evaluation.plan.cost import costs  # which imports torch

    needs = costs([(candidate, work) for candidate, work in works if work.tokens])
    most = max(needs, key=lambda cost: cost.memory)
    chunk = f"a chunk of {most.texts:,} texts and {most.tokens:,} tokens {in_bytes(most.chunk)}"
    return [
        f"FLOPs: {sum(cost.flops for cost in needs):.3g} of matrix products and attention, padding as it is run.",
        f"Memory: {in_bytes(most.memory)} of tensors on a device while it encodes (weights {in_bytes(most.weights)}, "
        f"{chunk}); loading, Python and libraries take more.",
    ]


def finished_names(candidate: Candidate, task_set: TaskSet) -> set[str]:
    """Return the tasks that are scored for this candidate, as far as can be told without loading it."""
    return scored_in(candidate, task_set)[1]


def scored_in(candidate: Candidate, task_set: TaskSet) -> tuple[Path, set[str]]:
    """Return the folder that has most of the tasks scored for this candidate, on whatever device, and these tasks.
    It goes by the copies of the manifest beside the scores."""
    manifest = _bare(json.loads(json.dumps(candidate.manifest, default=str)))  # as it comes back from a file
    best = model_folder(candidate), set[str]()
    for path in model_folder(candidate).glob(f"*/{MANIFEST}"):
        if _bare(read_object(path) or {}) == manifest:
            done = {task.metadata.name for task in task_set.tasks if finished(path.parents[1], task)}
            best = max(best, (path.parents[1], done), key=lambda pair: len(pair[1]))
    return best


def _bare(manifest: Config) -> Config:
    """A manifest without what is added when it is written, or written beside scores, and without the command's keys."""
    bare = {k: v for k, v in manifest.items() if k not in ("evaluation", SEAL, "manifest_version")}
    config = bare.get("config")
    if isinstance(config, dict):
        bare["config"] = {k: v for k, v in config.items() if k == "threads" or k not in own_keys("evaluate")}
    return bare


def in_time(seconds: float) -> str:
    """A time for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
