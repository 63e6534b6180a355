"""Packages written by a test into a folder of its own, installed as pip would leave them."""

import pytest

from corpora import docstrings


def forget_packages() -> None:
    """Drop what the reader remembers of the environment."""
    docstrings._distributions.cache_clear()
    docstrings.package_version.cache_clear()
    docstrings._owner.cache_clear()


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
    """install_package("name", {"module.py": source}), with the metadata of its distribution."""

    def done(package: str, files: dict[str, str], version: str = "1.0") -> None:
        info = site / f"{package}-{version}.dist-info"
        written = {site / package / name: source for name, source in files.items()}
        written[info / "METADATA"] = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        written |= {
            info / "top_level.txt": f"{package}\n",
            info / "RECORD": "".join(f"{package}/{n},,\n" for n in files),
        }
        for path, text in written.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        forget_packages()

    return done
