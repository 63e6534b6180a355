"""One question put to encoders: the registry, and the progress of whatever it goes through.

A question is a module below this folder with `PLACE`, its place among the answers, and
`answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None`, which is None where the
question does not apply; settings: conf/representation.yaml, resolved. Its name is the module's. Keys of its own are
settings[name], with their limits in `LIMITS` and words in `WORDS`. Nothing else names it.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, TypeVar

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
    """Yield the items; with progress=true a line on standard error names the current one."""
    for k, item in enumerate(items, start=1):
        if settings["progress"]:
            print(f"{what}: {label(item)} ({k} of {len(items)})", file=sys.stderr, flush=True)
        yield item
