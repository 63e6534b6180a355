"""What mteb's metadata say of the texts of a task whose data are not read: how many, how long."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CHARACTERS_A_TOKEN = 4.0  # of the embedded vocabulary on docstrings; large vocabularies have more
SUBSETS = "hf_subset_descriptive_stats"


@dataclass(frozen=True)
class Column:
    """One column of texts: how many distinct ones, and their characters."""

    texts: int
    characters: int

    def tokens(self, max_length: int, added: int = 0, copies: int = 1) -> float:
        """At most: texts are cut at max_length, and hold four characters a token.

        added: tokens that the template puts round a text, EOS among them; copies: how often it writes the text.
        """
        return min(copies * self.characters / CHARACTERS_A_TOKEN + added * self.texts, self.texts * max_length)


def columns_of(task: Any) -> list[Column] | None:
    """Return the columns of a task of mteb, of all the tasks of which it consists; None where mteb has no numbers.

    The training part of a classification counts whole, though mteb draws only shots from it.
    """
    found: list[Column] = []
    for part in getattr(task.metadata, "tasks", None) or [task]:
        statistics = part.metadata.descriptive_stats or {}
        own = [c for split in (*part.eval_splits, "train") for c in _columns(statistics.get(split), part.hf_subsets)]
        if not own:
            return None
        found += own
    return found


def _columns(statistics: Any, subsets: Any) -> Iterator[Column]:
    if not isinstance(statistics, dict):
        return
    by_subset = statistics.get(SUBSETS)
    if by_subset:
        for name in [s for s in subsets or by_subset if s in by_subset]:
            yield from _columns(by_subset[name], None)
    elif statistics.get("total_text_length"):
        yield Column(int(statistics.get("unique_texts") or 0), int(statistics["total_text_length"]))
    else:
        inner = [c for value in statistics.values() for c in _columns(value, None)]
        whole = statistics.get("number_of_characters")
        yield from inner or ([Column(int(statistics.get("num_samples") or 0), int(whole))] if whole else [])
