"""The work of one encoder: distinct texts and tokens, counted where the data can be read."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from encoders.templates import SIDES, TEXT_FIELD
from evaluation.candidates.candidates import Measure
from evaluation.instructions import Instructions
from evaluation.plan.text_volume import of_languages, parts_of, text_columns
from evaluation.tasks.chosen import TaskSet
from evaluation.tasks.task_data import texts_of_task

CHARACTERS_A_TOKEN = 4.0  # of the embedded vocabulary on docstrings; large vocabularies have more


@dataclass(frozen=True)
class Column:
    """One column of texts: how many distinct ones, and their characters."""

    texts: int
    characters: int

    def tokens(self, max_length: int, added: int = 0, copies: int = 1) -> float:
        """At most: texts are cut at max_length, and hold four characters a token.
        added: tokens that the template puts round a text, EOS among them; copies: how often it writes the text."""
        return min(copies * self.characters / CHARACTERS_A_TOKEN + added * self.texts, self.texts * max_length)


def columns_of(task: Any) -> list[Column] | None:
    """Return the columns of a task of mteb, of all the tasks of which it consists; None where mteb has no numbers.
    The training part of a classification counts whole, though mteb draws only shots from it."""
    columns: list[Column] = []
    for part in parts_of([task]):
        counted = part.metadata.descriptive_stats or {}
        splits = [split for split in (*part.eval_splits, "train") if split in counted]
        of_part = [c for split in splits for each in of_languages(part, split, strict=False) for c in _columns(each)]
        if not of_part:
            return None
        columns += of_part
    return columns


def _columns(statistics: dict[str, Any]) -> list[Column]:
    """The columns of texts; of older statistics, which do not add up each column, all as one."""
    columns = [Column(c["unique_texts"], c["total_text_length"]) for c in text_columns(statistics).values()]
    whole = statistics.get("number_of_characters")
    return columns or ([Column(statistics["num_samples"], whole)] if whole else [])


SAMPLE = 20_000  # texts of one instruction that are tokenised to count; of more of them, evenly spaced ones
KEY_BYTES = 16


@dataclass(frozen=True)
class Forecast:
    """`texts`: distinct pairs of instruction and text. `how`: where the numbers come from. bytes: of the vectors.
    lengths: tokens of a text -> how many texts have so many. longest: the most tokens that a text can have."""

    texts: int
    tokens: int
    how: str
    bytes: int
    lengths: dict[float, float]
    longest: int


def forecast(measure: Measure, instructions: Instructions, tasks: Sequence[Any], task_set: TaskSet) -> Forecast | None:
    """Return what an encoder has to do for `tasks`, some of `task_set`; None where mteb's metadata say nothing."""
    if all(task.metadata.name in task_set.data for task in tasks):
        texts, lengths, sampled = _counted(measure, instructions, tasks, task_set)
        longest = int(max(lengths, default=0))
        how = f"{sampled}by the tokenizer of {measure.model}, at most {measure.max_length} a text"
    else:
        columns = [columns_of(task) for task in tasks]
        if any(of_task is None for of_task in columns):
            return None
        known = [(column, task) for of_task, task in zip(columns, tasks, strict=True) for column in of_task or ()]
        texts = sum(column.texts for column, _ in known)
        written = {task.metadata.name: _written(measure, instructions, task) for task in tasks}
        lengths, longest = defaultdict(float), measure.max_length  # all texts of a column as long as their mean
        for column, task in known:
            if column.texts:
                mean = column.tokens(measure.max_length, *written[task.metadata.name]) / column.texts
                lengths[mean] += column.texts
        how = f"at most, by mteb's metadata, 4 characters a token and at most {measure.max_length} tokens a text"
    tokens = round(sum(length * many for length, many in lengths.items()))
    return Forecast(texts, tokens, how, texts * (4 * measure.width + KEY_BYTES), dict(lengths), longest)


def _asked(measure: Measure, instructions: Instructions, task: Any) -> dict[str, str]:
    """Return what the tokenizer takes for each side of a task."""
    return {side: measure.template.asked(instructions.of(task.metadata, side), side) for side in SIDES}


def _written(measure: Measure, instructions: Instructions, task: Any) -> tuple[int, int]:
    """Tokens that the template puts round a text of a task, and how often it writes the text: of sides the larger."""
    asked = _asked(measure, instructions, task).values()
    copies = max(measure.template.form(words).count(TEXT_FIELD) for words in asked)
    return max(measure.lengths([""], words)[0] for words in asked), copies


def _counted(
    measure: Measure, instructions: Instructions, tasks: Sequence[Any], task_set: TaskSet
) -> tuple[int, dict[float, float], str]:
    """Texts, how many have how many tokens, and a word on how many were tokenised."""
    distinct: dict[str, dict[str, None]] = {}  # instruction -> texts
    for task in tasks:
        asked = _asked(measure, instructions, task)
        for side, text in texts_of_task(task_set.data[task.metadata.name]):
            distinct.setdefault(asked[side], {})[text] = None
    lengths, tokenised = defaultdict[float, float](float), 0
    for instruction, texts in distinct.items():
        some = list(texts)[:: -(-len(texts) // SAMPLE)]
        for length in measure.lengths(some, instruction):
            lengths[length] += len(texts) / len(some)
        tokenised += len(some)
    count = sum(map(len, distinct.values()))
    return count, lengths, "" if tokenised == count else f"on a sample of {tokenised:,} "
