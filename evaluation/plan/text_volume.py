"""Numbers and lengths of the texts that mteb's tasks embed, by mteb's descriptive statistics: no data is read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.instructions import Instructions

FRAME = len("Instruct: \nQuery: ")  # what the encoder's template puts round an instruction


@dataclass(frozen=True)
class Volume:
    """Texts of one column of a task. side: query or document. texts: distinct ones. characters: of a text, the mean."""

    task: str
    kind: str
    side: str
    texts: int
    characters: float

    def tokens(self, characters_a_token: float, max_length: int, instruction: str = "") -> float:
        """Tokens of all texts, EOS included, at most: cutting at `max_length` is applied to the mean text.
        The mean of lengths that were cut is no larger than the mean length, cut (Jensen's inequality)."""
        added = len(instruction) + FRAME if instruction else 0
        return self.texts * min(1 + (self.characters + added) / characters_a_token, max_length)


def parts_of(tasks: Sequence[Any]) -> list[Any]:
    """Return the tasks that have data: an aggregate of mteb, such as CQADupstack, has none but its parts'."""
    return [part for task in tasks for part in (getattr(task.metadata, "tasks", None) or [task])]


def of_languages(task: Any, split: str, strict: bool = True) -> list[dict[str, Any]]:
    """Return mteb's statistics of a split: of each language that is scored, or of the split where there is but one.
    Raises `LookupError` where it has nothing of the split or, if `strict`, of one of the languages."""
    statistics = task.metadata.descriptive_stats[split]
    each = statistics.get("hf_subset_descriptive_stats")
    return [each[name] for name in task.hf_subsets if strict or name in each] if each else [statistics]


def text_columns(statistics: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the columns of texts among the statistics of a language."""
    return {k: v for k, v in statistics.items() if isinstance(v, dict) and "total_text_length" in v}


def text_volumes(tasks: Sequence[Any]) -> list[Volume]:
    """Return the columns of `tasks` (mteb.AbsTask) in the splits and languages that are scored.
    Each distinct text of a column counts once, as the encoder embeds it. Of a classification's training split the texts
    that its experiments can draw at most count. Raises `LookupError` for a task without statistics."""
    return [volume for part in parts_of(tasks) for volume in _of_task(part)]


def tokens_of(volumes: Sequence[Volume], tasks: Sequence[Any], instructions: Instructions, **sizes: Any) -> float:
    """Tokens of all `volumes` of `tasks`, each with its side's instruction; sizes: see `Volume.tokens`."""
    metadata = {part.metadata.name: part.metadata for part in parts_of(tasks)}
    return sum(v.tokens(**sizes, instruction=instructions.of(metadata[v.task], v.side)) for v in volumes)


def _of_task(task: Any) -> Iterator[Volume]:
    meta = task.metadata
    if not meta.descriptive_stats:
        raise LookupError(f"mteb has no statistics of {meta.name}.")
    for statistics in (statistics for split in task.eval_splits for statistics in of_languages(task, split)):
        for name, column in text_columns(statistics).items():
            side = "document" if name.startswith("documents") else "query"
            if meta.type != "Summarization" or name != "text_statistics":  # mteb embeds the summaries alone
                yield Volume(meta.name, meta.type, side, column["unique_texts"], column["average_text_length"])
    for statistics in of_languages(task, task.train_split) if meta.type == "Classification" else ():
        column, labels = statistics["text_statistics"], statistics["label_statistics"]["unique_labels"]
        texts = min(task.n_experiments * task.samples_per_label * labels, column["unique_texts"])
        yield Volume(meta.name, meta.type, "query", texts, column["average_text_length"])
