"""The texts that are read: by task type from a benchmark, a fixed seeded sample of each, and its relevant pairs."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from cli.errors import UserError
from records.streams import stream_seed

if TYPE_CHECKING:
    from encoders.tokens import Batch
    from evaluation.tasks.chosen import TaskSet
    from representation.encoders_studied import Subject

T = TypeVar("T")
Config = dict[str, Any]


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

    `benchmark`: where they are from, in words; `task_set`: its tasks, for those who score.
    """

    benchmark: str
    of_type: dict[str, list[Text]]
    pairs: list[tuple[Text, Text]]
    task_set: "TaskSet" = field(repr=False)

    @property
    def every(self) -> list[Text]:
        """The samples of all types, one after the other."""
        return [text for sample in self.of_type.values() for text in sample]

    @property
    def over(self) -> str:
        """Words for captions: `256 texts of each of 5 task types of benchmark docs_dev`."""
        sizes = {len(sample) for sample in self.of_type.values()}
        many = f"{sizes.pop()} texts" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)} texts"
        return f"{many} of each of {len(self.of_type)} task types of {self.benchmark}"

    def passes(
        self, subject: "Subject", wanted: Sequence[Text], compute: Callable[["Batch"], T]
    ) -> Iterator[tuple[list[int], T]]:
        """Yield (indices of `wanted`, what `compute` made of their batch), each text with its task's own instruction.

        One forward pass a text, if `compute` makes one; the longest of an instruction first, so in no order.
        """
        encoder = subject.encoder()
        template, instructions = encoder.tokenizer.template, subject.instructions
        metadata = {task.metadata.name: task.metadata for task in self.task_set.tasks}
        places: dict[str, list[int]] = {}
        for i, text in enumerate(wanted):
            asked = template.asked(instructions.of(metadata[text.task], text.side), text.side)
            places.setdefault(asked, []).append(i)
        for asked, own in places.items():
            for chunk, result in encoder.run([wanted[i].text for i in own], asked, compute):
                yield [own[i] for i in chunk], result


def read_texts(cfg: Config) -> Texts:
    """Return the texts that `benchmark` or `tasks_dir`, `texts` and `seed` ask for.

    Raises `UserError` for a benchmark of mteb's own, whose texts are not read here.
    """
    from evaluation.tasks.chosen import task_set
    from evaluation.tasks.task_data import texts_of_task

    found = task_set(cfg)
    if not found.data:
        raise UserError("Texts are read from benchmark=docs, docs_dev or docs_smoke, or from tasks_dir=<folder>.")
    pools: dict[str, dict[str, Text]] = {}
    for data in found.data.values():
        own = pools.setdefault(data.type, {})
        for side, text in texts_of_task(data):
            own.setdefault(text, Text(data.type, data.name, side, text))
    drawn = {kind: _sample(list(own.values()), cfg, kind) for kind, own in pools.items()}
    return Texts(_named(cfg), drawn, _sample(list(_relevant(found)), cfg, "pairs"), found)


def _named(cfg: Config) -> str:
    if not cfg.get("benchmark"):
        return f"the tasks in {cfg['tasks_dir']}"
    packages = ", ".join(cfg["benchmark"]["packages"])
    return f"benchmark {cfg['benchmark']['name']} ({packages})"


def _sample(pool: list[T], cfg: Config, stream: str) -> list[T]:
    """At most `texts` of them, by their place in the pool alone."""
    rng = random.Random(stream_seed(cfg["texts_seed"], f"representation {stream}"))
    return [pool[i] for i in sorted(rng.sample(range(len(pool)), min(cfg["texts"], len(pool))))]


def _relevant(found: "TaskSet") -> Iterator[tuple[Text, Text]]:
    """Every query of retrieval with each document that is relevant to it."""
    from evaluation.tasks.task_data import joined

    for data in found.data.values():
        if data.type != "Retrieval":
            continue
        corpus, queries = data.content["corpus"], data.content["queries"]
        for query, grades in data.content["qrels"].items():
            for document in (key for key, grade in grades.items() if grade > 0):
                yield (
                    Text(data.type, data.name, "query", queries[query]),
                    Text(data.type, data.name, "document", joined(corpus[document])),
                )
