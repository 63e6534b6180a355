"""How far a question is: one line a subject on standard error, with a bar while it lasts."""

from collections.abc import Iterator, Sequence
from typing import Any

from representation.subject import Subject


def each(subjects: Sequence[Subject], what: str, settings: dict[str, Any]) -> Iterator[Subject]:
    """Yield the subjects, showing which one is being read for `what`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
        console=Console(stderr=True),
        disable=not settings["progress"],
        transient=True,
    )
    with bar:
        line = bar.add_task(what, total=len(subjects))
        for subject in subjects:
            bar.update(line, description=f"{what}: {subject.label}")
            yield subject
            bar.advance(line)
