"""The protocol of an objective: one class in training/objectives/<name>.py, its keys in conf/objective/<name>.yaml."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from cli.compose import CONF
from cli.errors import UserError, nearest
from cli.limits import Limit
from corpora.triples import Triple
from encoders.tokens import Tokens
from training.held_out import split
from training.large_batch import LargeBatch
from training.set_up import SetUp

Config = dict[str, Any]
Scores = dict[str, float]


class Objective(ABC):
    """A loss with its data and its held-out scores. The class answers before loading; an instance serves one run.

    limits, words: allowed values of the objective's own keys, such as {"objective.temperature": real(0)}.
    unit: name of the examples in the manifest. scored_before: whether held-out texts are scored before the first step
    too.
    work: how rows become forward passes. examples: what batches are drawn from, by number. counts: numbers that a
    checkpoint keeps.
    """

    limits: ClassVar[Mapping[str, Limit]] = {}
    words: ClassVar[Mapping[str, Sequence[Any]]] = {}
    unit = "texts"
    scored_before = True
    work: LargeBatch
    examples: Sequence[Triple]
    counts: dict[str, int]

    @staticmethod
    def check(config: Config) -> None:
        """Refuse a configuration that this objective cannot train, before anything is loaded. Raises `UserError`."""
        return

    @staticmethod
    @abstractmethod
    def read(data: Config, cache_dir: str) -> list[Triple]:
        """Return the examples of a `data` configuration: `read_triples`, or `read_texts` of corpora/."""

    @staticmethod
    def split(examples: list[Triple], config: Config) -> tuple[list[Triple], list[Triple]]:
        """Return the examples that are trained on, and those that are held out."""
        return split(examples, config["data"])

    @staticmethod
    def texts_per_example(objective: Config) -> int:
        """Return how many texts of an example are run in a step at most; `check=true` counts with it."""
        return 1

    @staticmethod
    def check_width(objective: Config, width: int) -> None:
        """Refuse keys that do not fit embeddings of `width` entries. Raises `UserError`."""
        return

    @abstractmethod
    def __init__(self, setup: SetUp, examples: list[Triple], held_out: list[Triple]) -> None:
        """Take up an encoder and its data. held_out: examples that are never trained on."""

    @abstractmethod
    def lay_out(self, numbers: Sequence[int], step: int) -> tuple[Any, list[Tokens]]:
        """Return the layout of a batch, as `backward` takes it, and the rows that are run.

        It is called in a thread while an earlier step runs, so it depends on its arguments alone.
        """

    def compares(self, layout: Any) -> bool:
        """Return whether the loss of a batch compares anything, so that its gradient is not zero."""
        return True

    @abstractmethod
    def backward(self, layout: Any, rows: list[Tokens], step: int) -> Tensor:
        """Add the gradient of the loss to the trained parameters; return the loss (scalar, detached)."""

    @abstractmethod
    def held_out_rows(self) -> list[Tokens]:
        """Return the rows that `held_out_scores` runs; a frozen backbone computes their states in advance."""

    @abstractmethod
    def held_out_scores(self) -> Scores:
        """Score the held-out texts, the same random draws each time; no random stream of training is touched."""

    def write_held_out(self, folder: Path, scores: Scores) -> list[str]:
        """Write what `scores`, the last held-out ones, are means of, where that is kept; return the names of the
        files."""
        return []

    def facts(self, steps: Config) -> Config:
        """Return facts of the manifest that come on top of `steps`, the common ones, or replace them."""
        return {}


def objective_names() -> list[str]:
    """Return the names of all objectives, sorted: those with a file here and one in conf/."""
    files = {path.stem for path in Path(__file__).parent.glob("*.py")}
    return sorted(files & {path.stem for path in (CONF / "objective").glob("*.yaml")})


def objective_class(name: str) -> type[Objective]:
    """Return the class of the objective of that name. Raises `UserError` where there is none."""
    if name not in objective_names():
        raise UserError(f"There is no objective '{name}'. {nearest(name, objective_names())}")
    module = import_module(f"{__package__}.{name}")
    kinds = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Objective)]
    (kind,) = [kind for kind in kinds if kind.__module__ == module.__name__ and not isabstract(kind)]
    return kind
