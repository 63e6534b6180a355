"""Docstrings of installed packages and of the standard library, read from source with `ast`, never imported."""

import ast
import gc
import importlib.metadata
import json
import os
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal
from typing import Any

from cli.errors import UserError
from corpora.cleaning import CLEANING_VERSION, split_docstring
from records.files import alone_in, of_value, write_text

STDLIB = "stdlib"
SUMMARY_CHARS = (20, 400)  # a query shorter says nothing; a longer one is no summary
BODY_CHARS = 80
NOT_DOCUMENTATION = {"test", "tests", "testing", "idlelib", "lib2to3", "site-packages", "_vendor", "turtledemo"}


@dataclass(frozen=True)
class Docstring:
    """One cleaned docstring: where it stands, its summary paragraph and the rest."""

    package: str  # import name, "sklearn"
    module: str  # dotted path, "sklearn.linear_model._ridge"
    name: str  # qualified name in the module, "Ridge.fit"; empty for the module's own docstring
    kind: str  # "module", "class" or "function"
    summary: str
    body: str

    @property
    def text(self) -> str:
        """Summary and rest as one text."""
        return f"{self.summary}\n\n{self.body}" if self.body else self.summary

    @property
    def is_pair(self) -> bool:
        """Tell whether the summary can be a query and the rest its answer."""
        return SUMMARY_CHARS[0] <= len(self.summary) <= SUMMARY_CHARS[1] and len(self.body) > BODY_CHARS


def read_docstrings(packages: Sequence[str], cache_dir: Path | str = "cache") -> list[Docstring]:
    """Read all docstrings of `packages` ("stdlib" for the standard library), in order of package, path and line. They
    are cached; the first reading takes a minute on two cores. Raises `UserError` for one that is not installed."""
    files = {package: _cache_file(package, cache_dir) for package in packages}
    if not all(file.exists() for file in files.values()):
        with alone_in(Path(cache_dir, "docstrings"), wait=True):  # another run may be at it
            missing = [(package, file) for package, file in files.items() if not file.exists()]
            with Pool(os.cpu_count(), signal, (SIGINT, SIG_DFL)) as pool:  # an executor's would outlive this process
                pool.starmap(_write_package, missing, chunksize=1)
    return [Docstring(**values) for package in packages for values in read_lines(files[package])]


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write each value as a line of JSON, all of them or none."""
    write_text(path, (json.dumps(value) + "\n" for value in values))


def read_lines(path: Path) -> Iterator[Any]:
    """Yield the value of each line of JSON."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def package_sources(packages: Sequence[str]) -> dict[str, str]:
    """Map each package to a digest of its version and of the names, sizes and times of its files, for keys of caches:
    an edit without a new version counts. It takes a quarter of a second for all packages of `data=docstrings`."""
    return {p: of_value([package_version(p), sorted(_files(_root(p)).items())]) for p in packages}


def _cache_file(package: str, cache_dir: Path | str) -> Path:
    key = of_value([package_sources([package]), CLEANING_VERSION])[:12]
    return Path(cache_dir) / "docstrings" / f"{package}-{package_version(package)}-{key}.jsonl"


_distributions = cache(importlib.metadata.packages_distributions)


@cache
def package_version(package: str) -> str:
    """Return the version of the distribution that installed a package."""
    return ".".join(map(str, sys.version_info[:3])) if package == STDLIB else _owner(package).version


@cache
def _owner(package: str) -> importlib.metadata.Distribution:
    if not (names := _distributions().get(package)):
        raise UserError(
            f"The package '{package}', whose docstrings are asked for, is not installed. "
            f"Install it (pip install -c constraints.txt {package}) or take it off the list in conf/data."
        )
    return importlib.metadata.distribution(names[0])


def _root(package: str) -> Path:
    """The package's folder, or its one file: where the distribution that gives the version has put it."""
    if package == STDLIB:
        return Path(sysconfig.get_paths()["stdlib"])
    owner = _owner(package)
    for name in (package, f"{package}.py"):
        path = Path(str(owner.locate_file(name)))
        if path.exists():
            return path
    raise UserError(f"The sources of the package '{package}' are not in site-packages. Reinstall it from a wheel.")


def _files(root: Path) -> dict[str, tuple[int, int]]:
    """Path below `root` -> (size, time) of each source; folders that hold no documentation are not entered."""
    found = [str(root)] if root.is_file() else []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in NOT_DOCUMENTATION]
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    states = ((file, os.stat(file)) for file in found)
    return {file[len(str(root)) + 1 :]: (state.st_size, state.st_mtime_ns) for file, state in states}


def _write_package(package: str, file: Path) -> None:
    gc.disable()  # it would go through millions of nodes of syntax trees; the process ends with the packages
    root = _root(package)
    docstrings: list[Docstring] = []
    for path in sorted(root / file for file in _files(root)):
        inside = path.relative_to(root.parent if package != STDLIB else root).with_suffix("")
        parts = inside.parts[:-1] if inside.name == "__init__" else inside.parts
        if not NOT_DOCUMENTATION.intersection(parts) and not inside.name.startswith(("test_", "conftest")):
            docstrings.extend(_read_file(path, package, ".".join(parts)))
    write_lines(file, map(vars, docstrings))


def _read_file(path: Path, package: str, module: str) -> Iterator[Docstring]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's sources
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return  # templates and sources of other Python versions
    for name, kind, node in _documented(tree, ""):
        raw = ast.get_docstring(node)
        summary, body = split_docstring(raw) if raw else ("", "")
        if summary:
            yield Docstring(package, module, name, kind, summary, body)


BODIES = ("body", "handlers", "orelse", "finalbody", "cases")  # where statements stand, in the order of ast's fields
DocumentedNode = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _documented(node: ast.AST, prefix: str) -> Iterator[tuple[str, str, DocumentedNode]]:
    if isinstance(node, ast.Module):
        yield "", "module", node
    for child in (child for field in BODIES for child in getattr(node, field, ())):
        name = prefix
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{child.name}" if prefix else child.name
            yield name, "class" if isinstance(child, ast.ClassDef) else "function", child
        yield from _documented(child, name)


TOO_BIG = 1 / 3  # a subpackage with a larger share of the package is divided one level deeper


def subpackages(modules: Sequence[str]) -> dict[str, str]:
    """Map each module to its subpackage: two levels ("scipy.stats"); one more where that holds over a third of all."""
    depth = dict.fromkeys(modules, 2)
    while True:
        labels = {m: ".".join(m.split(".")[: depth[m]]) for m in depth}
        count = Counter(labels[m] for m in modules)
        big = [m for m in depth if count[labels[m]] > TOO_BIG * len(modules) and m.count(".") >= depth[m]]
        if not big:
            return labels
        for module in big:
            depth[module] += 1
