"""Ranges of dependencies hold what was tested, and `tests/floors.py` prints the lowest of each."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.floors import floors

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


def test_floors_are_the_lowest_allowed():
    """By packaging's own reading of each range: the version printed is allowed, the next below it is not."""
    printed = dict(one.lower().split("==") for one in floors())
    assert len(printed) == sum(bool(one.specifier) for one in needed().values())
    for name, version in printed.items():
        allowed = needed()[name].specifier
        assert allowed.contains(version), name
        assert not allowed.contains(f"{version}.dev0", prereleases=True), name
