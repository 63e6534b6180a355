"""The tasks of a package as a file under cache_dir: the same command that builds them again takes seconds less."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from evaluation.task_data import TaskData
from records.atomic import write_text
from records.fingerprint import of_files, of_value

RULES = (
    *("corpora.cleaning", "corpora.docstrings", "corpora.near_copies"),
    *("evaluation.docs_selection", "evaluation.docs_tasks"),
)


def cached(key: Any, cache_dir: Path | str, build: Callable[[], list[TaskData]]) -> list[TaskData]:
    """Return what `build` gives, from the file of (`key`, source of the modules that build) where there is one.

    key: a JSON value, all that decides the tasks beside the code.
    """
    path = Path(cache_dir) / "tasks" / f"{of_value([key, _rules()])[:16]}.json"
    if not path.exists():
        write_text(path, json.dumps([asdict(task) for task in build()]))
    return [TaskData(**task) for task in json.loads(path.read_text(encoding="utf-8"))]


@cache
def _rules() -> str:
    """sha256 of the code: an edit there builds the tasks anew, so that no version has to be remembered."""
    return of_files(Path(str(import_module(name).__file__)) for name in RULES)
