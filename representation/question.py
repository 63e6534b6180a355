"""One question put to encoders: the protocol, the registry, and the progress bar of whatever it goes through.

A question is a module below this folder with `PLACE`, its place among the answers, and
`answer(encoders, texts, settings)`. Its name is the module's. Keys of its own are settings[name], from
conf/representation.yaml, with their limits in `LIMITS`. Nothing else names it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Protocol, TypeVar, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from analysis.questions.question import Answer
from representation.encoders_studied import Studied
from representation.texts import Texts

T = TypeVar("T")


class Question(Protocol):
    """A module that answers a question."""

    PLACE: int

    def answer(self, encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None:
        """Return the answer; None where the question does not apply. settings: conf/representation.yaml, resolved."""


@cache
def questions() -> dict[str, Question]:
    """Return name -> question of every module below this folder that has a `PLACE`, in that order."""
    infos = walk_packages([str(Path(__file__).parent)], f"{__package__}.")
    modules = [module for info in infos if hasattr(module := import_module(info.name), "PLACE")]
    return {
        module.__name__.rpartition(".")[2]: cast(Question, module)
        for module in sorted(modules, key=lambda module: module.PLACE)
    }


def each(
    items: Sequence[T], what: str, settings: dict[str, Any], label: Callable[[Any], str] = lambda item: str(item.label)
) -> Iterator[T]:
    """Yield the items with a bar on standard error that names the current one."""
    bar = Progress(
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
        console=Console(stderr=True),
        disable=not settings["progress"],
        transient=True,
    )
    with bar:
        line = bar.add_task(what, total=len(items))
        for item in items:
            bar.update(line, description=f"{what}: {label(item)}")
            yield item
            bar.advance(line)
