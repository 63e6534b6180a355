"""Ranges of dependencies: they hold what was tested, and leave out what is known to compute something else."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.floors import floors

ROOT = Path(__file__).resolve().parent.parent


def needed() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    return {one.name.lower(): one for one in map(Requirement, texts)}


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ("5.2.0", "router probabilities where logits are read"),
        ("5.14.1", "checkpointing of multilayer fails, sdpa ignores soft-capping"),
        ("5.20.2", "sdpa ignores soft-capping"),
        ("5.22.2", "checkpointing of multilayer fails"),
    ],
)
def test_versions_that_failed_are_left_out(version, fault):
    assert not needed()["transformers"].specifier.contains(version), fault


def test_the_pinned_versions_are_allowed():
    pins = dict(
        line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    )
    outside = {n: pins[n] for n, one in needed().items() if n in pins and not one.specifier.contains(pins[n])}
    assert not outside
    assert needed().keys() <= pins.keys()


def test_floors_are_the_lowest_allowed():
    """By packaging's own reading of each range: the version printed is allowed, the next below it is not."""
    printed = dict(one.lower().split("==") for one in floors())
    assert len(printed) == sum(bool(one.specifier) for one in needed().values())
    for name, version in printed.items():
        allowed = needed()[name].specifier
        assert allowed.contains(version), name
        assert not allowed.contains(f"{version}.dev0", prereleases=True), name


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_floors_installs_them_and_runs_the_contract(tmp_path):
    words = ["make", "--dry-run", "floors", f"FLOORS={tmp_path / 'venv'}"]
    plan = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True).stdout
    assert f"tests/floors.py > {tmp_path / 'venv'}/floors.txt" in plan
    assert f"--requirement {tmp_path / 'venv'}/floors.txt" in plan
    assert "-m pytest tests/contract tests/encoders tests/analysis/statistics" in plan
