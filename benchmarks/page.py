"""Prints a measurement with what it was taken on, or puts it into its section of docs/tables/performance.md."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import torch

from records.files import write_text
from records.manifest import environment

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tables" / "performance.md"


def stamp() -> str:
    """Date, commit, threads, machine, version of torch, and how busy the machine was before."""
    command = ["git", "describe", "--always", "--dirty=, with uncommitted changes"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    processor = environment()["machine"]["processor"] or platform.machine()
    return (
        f"{date.today()}, commit {commit or 'unknown'}, {torch.get_num_threads()} threads of {os.cpu_count()} cores "
        f"({processor}), torch {torch.__version__}; load average before: {os.getloadavg()[0]:.1f}."
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def publish(name: str, title: str, parts: Sequence[str], write: bool) -> None:
    """Print the section; with `write`, also put it in place of the section `name` of docs/tables/performance.md.

    Sections stand between two comments, so that a new measurement replaces the old one (git keeps it) and what people
    have written around it stays.
    """
    text = "\n\n".join([f"## {title}", *parts]) + "\n"
    print(f"\n{text}", flush=True)
    if write:
        write_text(PAGE, placed(PAGE.read_text(encoding="utf-8"), name, text))


def placed(page: str, name: str, text: str) -> str:
    """`page` with `text` in section `name`, which is added at the end where it is absent."""
    start, end = f"<!-- measured: {name} -->", f"<!-- end of {name} -->"
    section = f"{start}\n{text}{end}"
    if start not in page:
        return f"{page.rstrip()}\n\n{section}\n"
    before, _, rest = page.partition(start)
    return before + section + rest.partition(end)[2]
