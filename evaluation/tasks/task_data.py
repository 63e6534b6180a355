"""The texts of a task of ours that mteb may ask to embed, each with its side: queries and documents."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

TYPES = ("Retrieval", "Reranking", "Classification", "Clustering", "PairClassification", "STS", "Summarization")


@dataclass(frozen=True)
class TaskData:
    """One task. `content` is, by type:

    * Retrieval, Reranking: {"corpus": {id: {"title", "text"}}, "queries": {id: text}, "qrels": {query: {doc: grade}},
      "top_ranked": {query: [doc]} or None};
    * the others: {split: {column: [value, one a row]}}, columns as in mteb's data sets of that type.

    `settings` are attributes of the mteb task class (`n_experiments`, `min_score`, ...): they belong to the content,
    since another value gives another score.
    """

    name: str
    type: str
    main_score: str
    source: str
    content: dict[str, Any]
    prompt: str | dict[str, str] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Hex digest of all that decides the score, whatever the order of dictionaries."""
        text = json.dumps([self.type, self.main_score, self.content, self.settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


COLUMNS = {
    "Classification": ("text",),
    "Clustering": ("sentences",),
    "PairClassification": ("sentence1", "sentence2"),
    "STS": ("sentence1", "sentence2"),
    "Summarization": ("human_summaries", "machine_summaries"),
}


def texts_of_task(data: TaskData) -> Iterator[tuple[str, str]]:
    """Yield (side, text) as mteb hands them over, with repeats, without empty ones.

    Some are never asked for: mteb draws shots from the training part of a classification. Symmetric tasks have queries
    only.
    """
    if data.type in ("Retrieval", "Reranking"):
        yield from (("document", text) for text in map(joined, data.content["corpus"].values()) if text)
        yield from (("query", text) for text in data.content["queries"].values() if text.strip())
        return
    values = (value for columns in data.content.values() for name in COLUMNS[data.type] for value in columns[name])
    for value in values:  # a text, or a list of summaries
        yield from (("query", text) for text in ([value] if isinstance(value, str) else value) if text.strip())


def joined(doc: dict[str, Any]) -> str:
    """Title and text as mteb joins them."""
    return f"{doc['title']} {doc['text']}".strip() if doc["title"] else doc["text"].strip()
