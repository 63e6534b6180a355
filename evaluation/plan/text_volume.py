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

        The mean of lengths that were cut is no larger than the mean length, cut (Jensen's inequality).
        """
        added = len(instruction) + FRAME if instruction else 0
        return self.texts * min(1 + (self.characters + added) / characters_a_token, max_length)


def text_volumes(tasks: Sequence[Any]) -> list[Volume]:
    """Return the columns of `tasks` (mteb.AbsTask) in the splits and languages that are scored.

    Each distinct text of a column counts once, as the encoder embeds it. Of a classification's training split the
    texts that its experiments can draw at most count. Raises `LookupError` for a task without statistics.
    """
    parts = [part for task in tasks for part in (getattr(task.metadata, "tasks", None) or [task])]
    return [volume for part in parts for volume in _of_task(part)]


def tokens_of(volumes: Sequence[Volume], tasks: Sequence[Any], instructions: Instructions, **sizes: Any) -> float:
    """Tokens of all `volumes` of `tasks`, each with its side's instruction; sizes: see `Volume.tokens`."""
    parts = [part for task in tasks for part in (getattr(task.metadata, "tasks", None) or [task])]
    metadata = {part.metadata.name: part.metadata for part in parts}
    return sum(v.tokens(**sizes, instruction=instructions.of(metadata[v.task], v.side)) for v in volumes)


def _of_task(task: Any) -> Iterator[Volume]:
    statistics = task.metadata.descriptive_stats
    if not statistics:
        raise LookupError(f"mteb has no statistics of {task.metadata.name}.")
    for split in task.eval_splits:
        for found in _of_languages(statistics[split], task.hf_subsets):
            for name, column in _columns(found):
                side = "document" if name.startswith("documents") else "query"
                yield _volume(task, side, column["unique_texts"], column)
    if task.metadata.type == "Classification":
        yield from _drawn(task, statistics)


def _drawn(task: Any, statistics: dict[str, Any]) -> Iterator[Volume]:
    """The training texts of a classification: those that are drawn for its experiments, at most."""
    for found in _of_languages(statistics[task.train_split], task.hf_subsets):
        column, labels = found["text_statistics"], found["label_statistics"]["unique_labels"]
        drawn = task.n_experiments * task.samples_per_label * labels
        yield _volume(task, "query", min(drawn, column["unique_texts"]), column)


def _of_languages(statistics: dict[str, Any], subsets: Sequence[str]) -> list[dict[str, Any]]:
    """The statistics of the languages that are scored; of all where there is but one."""
    each = statistics.get("hf_subset_descriptive_stats") or {}
    return [each[name] for name in subsets] if each else [statistics]


def _columns(statistics: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The columns of texts. Of a summarization's three mteb embeds the summaries alone."""
    found = {k: v for k, v in statistics.items() if isinstance(v, dict) and "total_text_length" in v}
    if "machine_summaries_statistics" in found:
        found.pop("text_statistics")
    return list(found.items())


def _volume(task: Any, side: str, texts: int, column: dict[str, Any]) -> Volume:
    return Volume(task.metadata.name, task.metadata.type, side, texts, column["average_text_length"])
