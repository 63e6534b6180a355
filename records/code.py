"""The source of a run: which modules of this repository its configuration leads to, and their sha256."""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

PACKAGES = ("cli", "records", "corpora", "poolers", "encoders", "training", "evaluation")
ROOT = Path(__file__).resolve().parent.parent


def modules_of(roots: Iterable[str], chosen: Mapping[str, Sequence[str]]) -> dict[str, dict]:
    """Return {"modules": {module: sha256 of its source}, "chosen": {group: its modules}} of a run.

    roots: modules that every run imports. chosen: group of the configuration -> the modules that its member names, such
    as {"pooler": ["poolers.eos"]}; below "chosen" stands what is there for that choice alone. Imports are read from the
    sources, not from what the process has loaded, so a run in a sweep has the modules that it has by itself.
    Raises `LookupError` for a root or a member that is no module of ours.
    """
    roots = list(roots)
    every = _closure((*roots, *chain(*chosen.values())))
    sources = {name: hashlib.sha256(_file(name).read_bytes()).hexdigest() for name in sorted(every)}
    others = {group: chain(*(m for g, m in chosen.items() if g != group)) for group in chosen}
    return {
        "modules": sources,
        "chosen": {group: sorted(every - _closure((*roots, *others[group]))) for group in chosen},
    }


def _closure(names: Iterable[str]) -> set[str]:
    """The modules, those they import, and so on; packages have no code of their own to speak of, but count."""
    modules: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules.add(name)
            waiting += _imported(_file(name))
            waiting += [name.rpartition(".")[0]] if "." in name else []
    return modules


@cache
def _imported(path: Path) -> tuple[str, ...]:
    """Modules of ours that a source file imports anywhere in it, with the packages that they lie in."""
    modules: dict[str, None] = {}
    for name in _names(ast.parse(path.read_bytes())):
        parts = name.split(".")
        if parts[0] in PACKAGES:
            inside = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
            modules |= {module: None for module in inside if _place(module)}
    return tuple(modules)


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # a module, or a name in one


def _file(module: str) -> Path:
    path = _place(module)
    if path is None:
        raise LookupError(f"{module} is no module of this repository.")
    return path


def _place(module: str) -> Path | None:
    stem = ROOT.joinpath(*module.split("."))
    return next((p for p in (stem.with_suffix(".py"), stem / "__init__.py") if p.is_file()), None)
