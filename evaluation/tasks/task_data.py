"""The content of a task of ours, by type, and its digest."""

import hashlib
import json
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
