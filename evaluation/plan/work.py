"""The work of one encoder: distinct texts and tokens, counted where the data can be read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from encoders.templates import TEXT_FIELD
from evaluation.candidates.text_lengths import Measure
from evaluation.instructions import Instructions
from evaluation.tasks.chosen import TaskSet
from evaluation.tasks.task_data import texts_of_task

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


SAMPLE = 20_000  # texts of one instruction that are tokenised to count; of more of them, evenly spaced ones
KEY_BYTES = 16


@dataclass(frozen=True)
class Forecast:
    """`texts`: distinct pairs of instruction and text. `how`: where the numbers come from. bytes: of the vectors."""

    texts: int
    tokens: int
    how: str
    bytes: int


def forecast(measure: Measure, instructions: Instructions, tasks: Sequence[Any], task_set: TaskSet) -> Forecast | None:
    """Return what an encoder has to do for `tasks`, some of `task_set`; None where mteb's metadata say nothing."""
    if all(task.metadata.name in task_set.data for task in tasks):
        texts, tokens, sampled = _counted(measure, instructions, tasks, task_set)
        how = f"{sampled}by the tokenizer of {measure.model}, at most {measure.max_length} a text"
    else:
        columns = [columns_of(task) for task in tasks]
        if any(found is None for found in columns):
            return None
        known = [(column, task) for found, task in zip(columns, tasks, strict=True) for column in found or ()]
        texts = sum(column.texts for column, _ in known)
        written = {task.metadata.name: _written(measure, instructions, task) for task in tasks}
        tokens = round(sum(c.tokens(measure.max_length, *written[task.metadata.name]) for c, task in known))
        how = f"at most, by mteb's metadata, 4 characters a token and at most {measure.max_length} tokens a text"
    return Forecast(texts, tokens, how, texts * (4 * measure.width + KEY_BYTES))


def _written(measure: Measure, instructions: Instructions, task: Any) -> tuple[int, int]:
    """Tokens that the template puts round a text of a task, and how often it writes the text: of sides the larger."""
    sides = ("query", "document")
    said = [measure.template.asked(instructions.of(task.metadata, side), side) for side in sides]
    added = max(measure.lengths([""], asked)[0] for asked in said)
    return added, max(measure.template.form(asked).count(TEXT_FIELD) for asked in said)


def _counted(
    measure: Measure, instructions: Instructions, tasks: Sequence[Any], task_set: TaskSet
) -> tuple[int, int, str]:
    """Texts, tokens, and a word on how many were tokenised."""
    wanted: dict[str, dict[str, None]] = {}  # instruction -> distinct texts
    for task in tasks:
        said = {
            side: measure.template.asked(instructions.of(task.metadata, side), side) for side in ("query", "document")
        }
        for side, text in texts_of_task(task_set.data[task.metadata.name]):
            wanted.setdefault(said[side], {})[text] = None
    tokens, tokenised = 0.0, 0
    for instruction, distinct in wanted.items():
        step = -(-len(distinct) // SAMPLE)
        some = list(distinct)[::step]
        tokens += sum(measure.lengths(some, instruction)) * len(distinct) / len(some)
        tokenised += len(some)
    texts = sum(map(len, wanted.values()))
    return texts, round(tokens), "" if tokenised == texts else f"on a sample of {tokenised:,} "
