"""The scores that `evaluate.py` has written for an encoder, by task type."""

from math import fsum
from typing import Any

from representation.subject import Subject


def scores_of(subject: Subject) -> dict[str, float]:
    """Return task type -> mean main score over its tasks, of these very weights and settings; {} where there are none.

    Scores are looked for beside the run's study (or in `results=`), in the folder that evaluation would write to.
    """
    from analysis.reading.read_results import NOT_SCORES
    from analysis.reading.read_task import read_task
    from analysis.reading.task_types import read_types
    from evaluation.results import model_folder, revision

    candidate: Any = subject.candidate
    folder = model_folder(candidate) / revision(candidate, subject.encoder(), subject.instructions)
    types_file = candidate.results / "tasks.json"
    types = read_types(types_file) if types_file.is_file() else {}
    found: dict[str, list[float]] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name in NOT_SCORES:
            continue
        row = read_task(path, candidate.name, str(subject.seed))
        if row.task in types:
            found.setdefault(types[row.task], []).append(row.score)
    return {kind: fsum(values) / len(values) for kind, values in found.items()}
