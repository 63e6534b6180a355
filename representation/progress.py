"""How far a question is: a bar on standard error while it lasts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def _label(item: Any) -> str:
    return str(item.label)


def each(items: Sequence[T], what: str, settings: dict[str, Any], named: Callable[[Any], str] = _label) -> Iterator[T]:
    """Yield the items (subjects, or what `named` can name), showing which one is being worked on for `what`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
        console=Console(stderr=True),
        disable=not settings["progress"],
        transient=True,
    )
    with bar:
        line = bar.add_task(what, total=len(items))
        for item in items:
            bar.update(line, description=f"{what}: {named(item)}")
            yield item
            bar.advance(line)
