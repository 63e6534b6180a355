"""Every import arrow points one way, and what must start fast imports nothing heavy."""

import ast
import subprocess
import sys
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


@pytest.mark.parametrize(
    "module", ["analysis.__main__", "analysis.control.__main__", "train", "evaluate", "representation.__main__"]
)
def test_entry_points_import_nothing_heavy(module):
    code = f"import sys, {module}; print(sorted({{'torch', 'mteb', 'transformers', 'pandas'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_root_evaluate_does_nothing_when_imported():
    """A root evaluate.py shadows the PyPI package of that name, which libraries import."""
    done = subprocess.run(
        [sys.executable, "-c", "import evaluate"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_no_file_is_a_drawer():
    files = [p for package in MAY_IMPORT for p in (ROOT / package).rglob("*.py")]
    assert not [p for p in files if p.stem in ("utils", "helpers", "common", "misc")]
    assert not [p for p in files if len(p.read_text().splitlines()) > 300]
    for entry in ("train.py", "evaluate.py"):
        assert len((ROOT / entry).read_text().splitlines()) <= 80
