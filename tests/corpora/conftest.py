"""Packages written by a test into a folder of its own, installed as pip would leave them."""

from pathlib import Path

import pytest

from corpora import docstrings


def install(site: Path, package: str, files: dict[str, str], version: str = "1.0") -> None:
    """Write a package and the metadata of its distribution. files: path inside the package -> source."""
    for name, source in files.items():
        path = site / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    info = site / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "top_level.txt").write_text(package + "\n")
    (info / "RECORD").write_text("".join(f"{package}/{name},,\n" for name in files))


def forget_packages() -> None:
    """Drop what the reader remembers of the environment."""
    docstrings._distributions.cache_clear()
    docstrings._version.cache_clear()


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An empty folder on the import path; after the test the environment is read anew."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    forget_packages()
    yield folder
    forget_packages()


@pytest.fixture
def install_package(site):
    """install_package("name", {"module.py": source})."""

    def done(package: str, files: dict[str, str], version: str = "1.0") -> None:
        install(site, package, files, version)
        forget_packages()

    return done
