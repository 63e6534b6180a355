"""TaskData -> a real mteb task: mteb's own class of that type, with our data in place of a hub data set."""

from functools import cache
from typing import Any

from evaluation.tasks.task_data import TaskData


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
