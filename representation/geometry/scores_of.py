"""The scores that `evaluate.py` has written for encoders, on the tasks that all of them were scored on."""

from collections.abc import Mapping
from math import fsum
from typing import Any

from representation.subject import Subject

Scores = dict[str, tuple[str, float]]  # task -> (type, main score)


def scores_of(subject: Subject) -> Scores:
    """Return the scores of these very weights and settings; {} where there are none.

    They are looked for beside the run's study (or in `results=`), in the folder that evaluation would write to.
    """
    from analysis.reading.read_results import NOT_SCORES
    from analysis.reading.read_task import read_task
    from analysis.reading.task_types import read_types
    from evaluation.results import model_folder, revision

    candidate: Any = subject.candidate
    folder = model_folder(candidate) / revision(candidate, subject.encoder(), subject.instructions)
    types_file = candidate.results / "tasks.json"
    types = read_types(types_file) if types_file.is_file() else {}
    files = [path for path in sorted(folder.glob("*.json")) if path.name not in NOT_SCORES]
    rows = [read_task(path, candidate.name, str(subject.seed)) for path in files]
    return {row.task: (types[row.task], row.score) for row in rows if row.task in types}


def type_scores(found: Mapping[str, Scores]) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Return (encoder -> task type -> mean score, task type -> how many tasks), over the tasks that all encoders have.

    A mean over other tasks would be another scale. Encoders without any score are left out.
    """
    scored = {label: own for label, own in found.items() if own}
    shared = set.intersection(*(set(own) for own in scored.values())) if scored else set()
    kinds: dict[str, list[str]] = {}
    for task in sorted(shared):
        kinds.setdefault(next(iter(scored.values()))[task][0], []).append(task)
    means = {
        label: {kind: fsum(own[task][1] for task in tasks) / len(tasks) for kind, tasks in kinds.items()}
        for label, own in scored.items()
        if shared
    }
    return means, {kind: len(tasks) for kind, tasks in kinds.items()}
