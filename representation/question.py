"""One question put to encoders: the registry, and the progress bar of whatever it goes through.

A question is a module below this folder with `PLACE`, its place among the answers, and
`answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None`, which is None where the
question does not apply; settings: conf/representation.yaml, resolved. Its name is the module's. Keys of its own are
settings[name], with their limits in `LIMITS` and words in `WORDS`. Nothing else names it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

T = TypeVar("T")


@cache
def questions() -> dict[str, ModuleType]:
    """Return name -> question of every module below this folder that has a `PLACE`, in that order."""
    infos = walk_packages([str(Path(__file__).parent)], f"{__package__}.")
    modules = [module for info in infos if hasattr(module := import_module(info.name), "PLACE")]
    return {m.__name__.rpartition(".")[2]: m for m in sorted(modules, key=lambda module: module.PLACE)}


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
