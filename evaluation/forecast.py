"""What one encoder has to do: distinct texts and tokens, counted where the data can be read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from encoders.templates import TEXT_FIELD
from evaluation.benchmarks import TaskSet
from evaluation.instructions import Instructions
from evaluation.measure import Measure
from evaluation.mteb_statistics import columns_of
from evaluation.task_texts import texts_of_task

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
