"""What `python -m representation` found, as sections of the page: it is read from its answers.json alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.grids.grid import Cell, Grid
from analysis.grids.html import HtmlGrid, html_grid
from cli.errors import UserError

ANSWERS = "answers.json"
VERSION = 1


@dataclass(frozen=True)
class Part:
    """One question's answer. `over`: which encoders and texts it is about; `figures`: as the page's own."""

    name: str
    title: str
    over: str
    grids: list[HtmlGrid]
    figures: list[dict[str, Any]]
    notes: list[str]


def representation_parts(folder: Path | None) -> list[Part]:
    """Return the answers in a folder, none for None. Raises UserError for what that command has not written."""
    if folder is None:
        return []
    path = folder / ANSWERS
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if held["version"] != VERSION:
            raise ValueError(f"version {held['version']}")
        return [_part(answer, folder) for answer in held["answers"]]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not as python -m representation writes it ({type(error).__name__}: {error}). Run that again."
        ) from error


def _part(answer: dict[str, Any], folder: Path) -> Part:
    grids = [html_grid(_grid(grid)) for grid in answer["grids"]]
    figures = [_figure(figure, folder) for figure in answer["figures"]]
    return Part(answer["name"], answer["title"], answer["over"], grids, figures, answer["notes"])


def _grid(held: dict[str, Any]) -> Grid:
    rows = [[Cell(**{**cell, "below": tuple(cell["below"])}) for cell in row] for row in held["rows"]]
    return Grid(**{**held, "rows": rows, "footnotes": tuple(held["footnotes"])})


def _figure(held: dict[str, Any], folder: Path) -> dict[str, Any]:
    words = {key: held[key] for key in ("name", "title", "caption", "alt", "width", "height")}
    file = f"{folder.name}/figures/{held['name']}.pdf"
    return words | {"source": f"data:image/svg+xml;base64,{held['svg']}", "file": file}
