"""Read the pages of docs: their sections, and the rows of tables in Markdown."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"
TABLES = DOCS / "tables"


def section(page, title):
    """Return the text of a page below a heading of level two, up to the next one."""
    parts = dict(part.split("\n", 1) for part in page.read_text(encoding="utf-8").split("\n## ")[1:])
    return parts[title]


def table_rows(text):
    """Return the cells of every row of the tables in a text, heads included, lines of dashes left out."""
    lines = [line for line in text.splitlines() if line[:2] == "| " and not re.fullmatch(r"[|: -]+", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def number(cell):
    """Return the number that a cell states, whatever sets it off."""
    return float(cell.strip("* ").replace("+", ""))
