"""`benchmark=`, `tasks_dir=`, `tasks=` -> the mteb tasks to run."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from cli.compose import options
from cli.errors import UserError, nearest
from evaluation.candidates import Config
from evaluation.tasks.docs import docs_tasks
from evaluation.tasks.docs_documents import Sizes
from evaluation.tasks.folder import folder_tasks
from evaluation.tasks.mteb_task import mteb_task
from evaluation.tasks.task_data import TaskData


@dataclass(frozen=True)
class TaskSet:
    """The tasks of one command, in order. `data`: content of tasks of ours by name; mteb's own are not read here."""

    tasks: list[Any]  # mteb.AbsTask
    data: dict[str, TaskData] = field(default_factory=dict)


def task_set(cfg: Config) -> TaskSet:
    """Return the tasks that the configuration asks for; `tasks` narrows a benchmark or a folder down.

    Raises `UserError` with the nearest names for an unknown benchmark or task.
    """
    benchmark, folder = cfg.get("benchmark"), cfg["tasks_dir"]
    only = [cfg["tasks"]] if isinstance(cfg["tasks"], str) else cfg["tasks"]
    if benchmark and folder:
        raise UserError("benchmark= and tasks_dir= are both given. Give one of them.")
    if folder:
        return _ours(folder_tasks(Path(folder), only))
    if benchmark and benchmark["kind"] == "docs":
        sizes = Sizes(**{f.name: benchmark[f.name] for f in fields(Sizes)})
        tasks = {task.name: task for task in docs_tasks(benchmark["packages"], sizes, cfg["cache_dir"])}
        return _ours(_narrowed(tasks, only, benchmark["name"]))
    if benchmark:
        return TaskSet(_of_benchmark(benchmark["name"], only or benchmark.get("tasks")))
    return TaskSet(_by_name(only))


def _ours(tasks: list[TaskData]) -> TaskSet:
    return TaskSet([mteb_task(task) for task in tasks], {task.name: task for task in tasks})


def _narrowed(tasks: dict[str, Any], only: Sequence[str] | None, where: str) -> list[Any]:
    for name in only or ():
        if name not in tasks:
            raise UserError(f"There is no task '{name}' in {where}. {nearest(name, tasks)}")
    return [tasks[name] for name in only or tasks]


def _of_benchmark(name: str, only: Sequence[str] | None) -> list[Any]:
    import mteb

    try:
        benchmark = mteb.get_benchmark(name)
    except KeyError as error:
        raise UserError(f"mteb: {error.args[0]} Ours: {', '.join(options('benchmark'))}.") from error
    return _narrowed({task.metadata.name: task for task in benchmark.tasks}, only, name)


def _by_name(names: Sequence[str] | None) -> list[Any]:
    import mteb

    if not names:
        raise UserError("Nothing to score on. Give benchmark=docs, tasks_dir=<folder> or tasks=[<mteb task>, ...].")
    try:
        return [mteb.get_task(name, languages=["eng"], exclusive_language_filter=True) for name in names]
    except KeyError as error:
        raise UserError(f"mteb: {error.args[0].removeprefix('KeyError: ')}") from error
