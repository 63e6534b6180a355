"""The registry of sections, and the progress of whatever one of them goes through.

A section is a module below this folder with `PLACE`, its place among the others, and
`section(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Section | None`, which is None where it
does not apply; settings: conf/representation.yaml, resolved. Its name is the module's. Keys of its own are
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
def sections() -> dict[str, ModuleType]:
    """Return name -> module of every section below this folder, in the order of their `PLACE`."""
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
