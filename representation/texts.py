"""The texts that are read: by task type from a benchmark, a fixed seeded sample of each, and its relevant pairs."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cli.errors import UserError
from encoders.tokens import Batch
from evaluation.tasks.chosen import TaskSet, task_set
from evaluation.tasks.task_data import TaskData
from records.files import stream_seed
from representation.encoders_studied import Studied

T = TypeVar("T")
S = TypeVar("S", bound=np.generic)
Config = dict[str, Any]
Arrays = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Text:
    """`side`: query (also of symmetric tasks) or document, which decides its instruction."""

    type: str
    task: str
    side: str
    text: str


@dataclass(frozen=True)
class Texts:
    """`of_type`: task type -> its sample, distinct texts. `pairs`: (query, a document relevant to it) of retrieval.

    `benchmark`: their source, in words; `task_set`: its tasks, for those who score.
    """

    benchmark: str
    of_type: dict[str, list[Text]]
    pairs: list[tuple[Text, Text]]
    task_set: TaskSet = field(repr=False)

    @property
    def every(self) -> list[Text]:
        """The samples of all types, one after the other."""
        return [text for sample in self.of_type.values() for text in sample]

    @property
    def distinct(self) -> list[Text]:
        """The samples of all types, a text of several types once."""
        return list({text.text: text for text in self.every}.values())

    @property
    def over(self) -> str:
        """Words for captions: `256 texts of each of 5 task types of benchmark docstrings_dev`."""
        sizes = {len(sample) for sample in self.of_type.values()}
        many = f"{sizes.pop()} texts" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)} texts"
        return f"{many} of each of {len(self.of_type)} task types of {self.benchmark}"

    def instruction(self, studied: Studied, task: str, side: str) -> str:
        """Return the instruction that evaluation gives a side of a task, as the encoder's template asks for it."""
        (metadata,) = (t.metadata for t in self.task_set.tasks if t.metadata.name == task)
        return studied.encoder().tokenizer.template.asked(studied.instructions.of(metadata, side), side)

    def passes(
        self, studied: Studied, wanted: Sequence[Text], compute: Callable[[Batch], T]
    ) -> Iterator[tuple[list[int], T]]:
        """Yield (indices of `wanted`, the result of `compute` on their batch), each text with its task's instruction.

        One forward pass per text, if `compute` makes one; the longest of an instruction first, so in no order.
        """
        of_side = {key: self.instruction(studied, *key) for key in dict.fromkeys((t.task, t.side) for t in wanted)}
        places: dict[str, list[int]] = {}
        for i, text in enumerate(wanted):
            places.setdefault(of_side[text.task, text.side], []).append(i)
        for instruction, rows in places.items():
            for chunk, result in studied.encoder().run([wanted[i].text for i in rows], instruction, compute):
                yield [rows[i] for i in chunk], result


def gathered(passes: Iterable[tuple[list[int], Mapping[str, NDArray[S]]]], count: int) -> dict[str, NDArray[S]]:
    """Return name -> [count, ...] from (places, name -> rows at these places)."""
    arrays: dict[str, NDArray[S]] = {}
    for places, part in passes:
        for name, rows in part.items():
            arrays.setdefault(name, np.empty((count, *rows.shape[1:]), rows.dtype))[places] = rows
    return arrays


def read_texts(cfg: Config) -> Texts:
    """Return the texts that `benchmark` or `tasks_dir`, `texts` and `texts_seed` ask for.

    Raises `UserError` for a benchmark of mteb's own, whose texts are not read here.
    """
    tasks = task_set(cfg)
    if not tasks.data:
        raise UserError(
            "Texts are read from benchmark=docstrings, docstrings_dev or docstrings_smoke, or from tasks_dir=<folder>."
        )
    benchmark = f"the tasks in {cfg['tasks_dir']}"
    if cfg.get("benchmark"):
        benchmark = f"benchmark {cfg['benchmark']['name']} ({', '.join(cfg['benchmark']['packages'])})"
    pools: dict[str, dict[str, Text]] = {}
    for data in tasks.data.values():
        pool = pools.setdefault(data.type, {})
        for side, text in texts_of_task(data):
            pool.setdefault(text, Text(data.type, data.name, side, text))
    of_type = {kind: _sample(list(pool.values()), cfg, kind) for kind, pool in pools.items()}
    return Texts(benchmark, of_type, _sample(list(_relevant(tasks)), cfg, "pairs"), tasks)


def _sample(pool: list[T], cfg: Config, stream: str) -> list[T]:
    """At most `texts` of them, by their place in the pool alone."""
    rng = random.Random(stream_seed(cfg["texts_seed"], f"representation {stream}"))
    return [pool[i] for i in sorted(rng.sample(range(len(pool)), min(cfg["texts"], len(pool))))]


def _relevant(tasks: TaskSet) -> Iterator[tuple[Text, Text]]:
    """Every query of retrieval with each document that is relevant to it."""
    for data in (data for data in tasks.data.values() if data.type == "Retrieval"):
        text, corpus, queries = partial(Text, data.type, data.name), data.content["corpus"], data.content["queries"]
        for query, grades in data.content["qrels"].items():
            for document in (key for key, grade in grades.items() if grade > 0 and joined(corpus[key])):
                yield text("query", queries[query]), text("document", joined(corpus[document]))


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
