"""The texts of a task of ours that mteb may ask to embed, each with its side: queries and documents."""

from collections.abc import Iterator
from typing import Any

from evaluation.task_data import TaskData, strings

COLUMNS = {
    "Classification": ("text",),
    "Clustering": ("sentences",),
    "PairClassification": ("sentence1", "sentence2"),
    "STS": ("sentence1", "sentence2"),
    "Summarization": ("human_summaries", "machine_summaries"),
}


def texts_of_task(data: TaskData) -> Iterator[tuple[str, str]]:
    """Yield (side, text) as mteb hands them over, with repeats.

    Some are never asked for: mteb draws shots from the training part of a classification, and documents of a clustering
    where `settings` limit them. Symmetric tasks have queries only.
    """
    if data.type in ("Retrieval", "Reranking"):
        for doc in data.content["corpus"].values():
            yield "document", joined(doc)
        for query in data.content["queries"].values():
            yield "query", query
        return
    for columns in data.content.values():
        for name in COLUMNS[data.type]:
            for text in strings(columns[name]):
                yield "query", text


def joined(doc: dict[str, Any]) -> str:
    """Title and text as mteb joins them."""
    return f"{doc['title']} {doc['text']}".strip() if doc["title"] else doc["text"].strip()
