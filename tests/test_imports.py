"""Every import arrow points one way, and what must start fast imports nothing heavy."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "cli": set(),
    "records": {"cli"},
    "corpora": {"cli", "records"},
    "poolers": {"cli", "records"},
    "encoders": {"cli", "poolers", "records"},
    "training": {"cli", "corpora", "encoders", "poolers", "records"},
    "evaluation": {"cli", "corpora", "encoders", "poolers", "records"},
    "analysis": {"cli", "records"},
    "studies": {"analysis", "cli", "records"},
    "representation": {"analysis", "cli", "corpora", "encoders", "evaluation", "poolers", "records"},
}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_arrows(package):
    for path in (ROOT / package).rglob("*.py"):
        ours = set(imported(path)) & MAY_IMPORT.keys() - {package}
        assert ours <= MAY_IMPORT[package], f"{path.name} imports {ours - MAY_IMPORT[package]}"


def circle(arrows):
    """Return a circle of nodes that import one another, or []. arrows: node -> nodes that it imports."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@cache
def arrows_inside(package):
    """File -> files of the same package that it imports, also inside functions."""
    files = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in (ROOT / package).rglob("*.py")}
    arrows = {name: set() for name in files}
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                inside = {f"{node.module}.{alias.name}" for alias in node.names} & files.keys()
                arrows[name] |= inside or {node.module} & files.keys()
    return arrows


PACKAGES = [*MAY_IMPORT, "benchmarks"]


@pytest.mark.parametrize("package", PACKAGES)
def test_files_import_one_way(package):
    """The arrows of a package can be drawn without a circle."""
    assert circle(arrows_inside(package)) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_import_one_way(package):
    """So can those of its rooms: a folder, or a file beside the folders."""
    room = {name: ".".join(name.split(".")[:2]) for name in arrows_inside(package)}
    arrows = {}
    for name, imports in arrows_inside(package).items():
        arrows.setdefault(room[name], set()).update(room[other] for other in imports if room[other] != room[name])
    assert circle(arrows) == []


HEAVY = {"torch", "mteb", "transformers", "pandas"}
ENTRY_POINTS = ["analysis.__main__", "analysis.control.__main__"]
ENTRY_POINTS += ["train", "evaluate", "study", "representation.__main__"]
ENTRY_POINTS += ["training.mine.__main__", "training.specialise.__main__", "encoders.export.__main__"]


def alone(code, *words):
    """What a fresh interpreter says that runs `code`, line by line."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.slow
def test_entry_points_import_nothing_heavy_and_do_nothing_when_imported():
    """One after another. A root evaluate.py shadows the PyPI package of that name, which libraries import."""
    shown = f"print(name, sorted({HEAVY} & sys.modules.keys()))"
    code = f"import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n    {shown}"
    assert alone(code, *ENTRY_POINTS) == [f"{name} []" for name in ENTRY_POINTS]


WITHOUT_TORCH = f"""
import io, sys, train
from contextlib import redirect_stdout

for flags in sys.argv[1:]:
    sys.argv[1:] = ["pooler=lastlayer", *flags.split()]
    with redirect_stdout(io.StringIO()) as shown:
        train.main()
    print(flags, len(shown.getvalue().splitlines()) > 10, sorted({HEAVY} & sys.modules.keys()))
"""


@pytest.mark.slow
def test_what_hydra_alone_can_print_needs_no_torch():
    flags = ["--help", "--info all", "--cfg all", "--cfg job"]
    assert alone(WITHOUT_TORCH, *flags) == [f"{each} True []" for each in flags]
