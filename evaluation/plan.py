"""What a command is about to do, before it does it: how many scores, how many of them are there, what it costs."""

from typing import Any

from evaluation.benchmarks import TaskSet
from evaluation.candidates import Candidate
from evaluation.results import MANIFEST, as_json, finished, model_folder, read_object
from records.seal import SEAL

CHARACTERS_A_TOKEN = 4.0  # of the tiny model's vocabulary on docstrings
TOKENS_A_SECOND = 25_000  # the tiny model on one core, texts uncut; a forecast, the report has what was measured


def plan(candidates: list[Candidate], task_set: TaskSet) -> str:
    """Return one paragraph: runs x tasks, finished before, cost."""
    tasks = len(task_set.tasks)
    done = sum(finished_before(c, task_set) for c in candidates)
    total = tasks * len(candidates)
    line = f"{len(candidates)} encoder{'s' * (len(candidates) > 1)} x {tasks} tasks = {total} scores; {done} are there"
    if total == done:
        return line + "."
    if task_set.characters is None:
        return line + "; mteb does not say how long the others' texts are."
    tokens = task_set.characters / CHARACTERS_A_TOKEN
    seconds = tokens * (total - done) / tasks / TOKENS_A_SECOND
    return (
        f"{line}. At most {_short(tokens)} tokens an encoder; at {TOKENS_A_SECOND:,} tokens/s, as the tiny model has"
        f" them on one core, {_time(seconds)} of encoding for the rest."
    )


def finished_before(candidate: Candidate, task_set: TaskSet) -> int:
    """Return how many of the tasks are scored for this candidate, as far as can be told without loading it.

    It goes by the copies of the manifest beside the scores.
    """
    best = 0
    for path in model_folder(candidate).glob(f"*/{MANIFEST}"):
        beside = read_object(path) or {}
        if _bare(beside) == _bare(as_json(candidate.manifest)):
            best = max(best, sum(finished(path.parents[1], task) for task in task_set.tasks))
    return best


def _bare(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest without what is added when it is written, or written beside scores."""
    return {k: v for k, v in manifest.items() if k not in ("evaluation", SEAL, "manifest_version")}


def _short(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.2g} {unit}" if count < 10 * size else f"{count / size:.0f} {unit}"
    return f"{count:.0f}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
