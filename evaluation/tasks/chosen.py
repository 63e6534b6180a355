"""`benchmark=`, `tasks_dir=`, `tasks=` -> the mteb tasks to run; ours by mteb's class of that type, with our data."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from cli.compose import options
from cli.errors import UserError, nearest
from corpora.hub import without_hub
from evaluation.candidates import Config
from evaluation.tasks.docs import docs_tasks
from evaluation.tasks.docs_documents import Sizes
from evaluation.tasks.folder import folder_tasks
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


def check_hub(tasks: list[Any]) -> None:
    """Raise `UserError` where neither the hub nor its cache has data of any of `tasks`, all of mteb."""
    from huggingface_hub import constants

    folders = [f"datasets--{task.metadata.dataset['path'].replace('/', '--')}" for task in tasks]
    if without_hub() and not any(Path(constants.HF_HUB_CACHE, folder).is_dir() for folder in folders):
        raise UserError(
            f"The hub cannot be reached, and its cache has none of mteb's {len(tasks)} data sets. "
            "Give benchmark=docstrings or tasks_dir=<folder of tasks>."
        )


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
        ours = ", ".join(name for name in options("benchmark") if name != "mteb")
        raise UserError(f"mteb: {error.args[0]} Ours: {ours}.") from error
    return _narrowed({task.metadata.name: task for task in benchmark.tasks}, only, name)


def _by_name(names: Sequence[str] | None) -> list[Any]:
    import mteb

    if not names:
        raise UserError("No task to score on. Give benchmark=docstrings, tasks_dir=<folder> or tasks=[<mteb task>].")
    try:
        return [mteb.get_task(name, languages=["eng"], exclusive_language_filter=True) for name in names]
    except KeyError as error:
        raise UserError(f"mteb: {error.args[0].removeprefix('KeyError: ')}") from error


def mteb_task(data: TaskData) -> Any:
    """Return an `mteb.AbsTask` for `data`. Its dataset revision is the beginning of the content's sha256, so that
    a score of other content under the same name is never taken for this one's."""
    from mteb.abstasks.task_metadata import TaskMetadata

    metadata = TaskMetadata(
        dataset={"path": f"local/{data.name}", "revision": data.sha256[:12]},
        name=data.name,
        description=data.source,
        prompt=data.prompt,  # type: ignore[arg-type]
        type=data.type,  # type: ignore[arg-type]
        category="t2c" if data.type in ("Classification", "Clustering") else "t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=data.main_score,
    )

    def load_data(self: Any, num_proc: int | None = None, **_: Any) -> None:
        if not self.data_loaded:
            self.dataset = _dataset(data)
            self.data_loaded = True

    members = {"metadata": metadata, "load_data": load_data, "__doc__": data.source}
    return type(data.name, (_base(data.type),), members | data.settings)()


def _base(kind: str) -> type:
    from mteb import abstasks
    from mteb.abstasks.text.summarization import AbsTaskSummarization

    if kind == "Summarization":
        return AbsTaskSummarization
    name = "Retrieval" if kind == "Reranking" else kind  # mteb 2: reranking is retrieval among `top_ranked`
    return getattr(abstasks, f"AbsTask{name}")


@cache
def listed() -> Any:
    """Return a Dataset whose `data["label"]` is a list, not a view that fetches row by row whenever it is read.
    mteb gives the labels to a dozen functions of scikit-learn in each experiment; each reads them several times."""
    from datasets import Dataset  # takes a second to import

    class Listed(Dataset):
        def __getitem__(self, key: Any) -> Any:
            values = super().__getitem__(key)
            return list(values) if isinstance(key, str) else values

    return Listed


def _dataset(data: TaskData) -> Any:
    from datasets import DatasetDict

    if data.type not in ("Retrieval", "Reranking"):
        return DatasetDict({split: listed().from_dict(columns) for split, columns in data.content.items()})
    corpus = [{"id": key, "title": doc["title"], "text": doc["text"]} for key, doc in data.content["corpus"].items()]
    queries = [{"id": key, "text": text} for key, text in data.content["queries"].items()]
    split = {
        "corpus": listed().from_list(corpus),
        "queries": listed().from_list(queries),
        "relevant_docs": {query: dict(grades) for query, grades in data.content["qrels"].items()},
        "top_ranked": data.content["top_ranked"],
    }
    return {"default": {"test": split}}
