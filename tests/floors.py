"""Prints the lowest version that pyproject.toml allows of each direct dependency, for pip: `make floors`."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def floors() -> list[str]:
    """Return name==version of every dependency, those of the tests too, that has a lowest version."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    bounds = [re.match(r"([\w.-]+)>=([\w.]+)", one) for one in needed]
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


if __name__ == "__main__":
    print("\n".join(floors()))
