"""Ranges of dependencies hold what was tested, and `tests/floors.py` prints the lowest of each."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


def needed() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    return {one.name.lower(): one for one in map(Requirement, texts)}


def test_the_pinned_versions_are_allowed():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().split("==") for line in lines if "==" in line)
    assert {n: pins[n] for n, one in needed().items() if n in pins and not one.specifier.contains(pins[n])} == {}
    assert needed().keys() <= pins.keys()
