"""Answers -> Markdown, csv, figures, and answers.json, which `python -m analysis ... representation=<folder>` reads."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.drawings.drawing import figure_words, write_figures
from analysis.grids.csv import csv_text
from analysis.grids.markdown import escape, markdown_grid
from analysis.questions.question import Answer
from cli.errors import UserError
from records.atomic import write_json, write_text

ANSWERS = "answers.json"


def markdown(answer: Answer) -> str:
    """Return an answer as Markdown: tables, figures by name with their captions, notes."""
    parts = [f"# {escape(answer.title)}\n"]
    parts += [f"## {escape(grid.title)}\n\n{markdown_grid(grid)}" for grid in answer.grids]
    parts += [
        f"## {escape(d.title)}\n\n![{escape(d.alt)}](figures/{d.name}.png)\n\n{escape(d.caption)}\n"
        for d in answer.drawings
    ]
    if answer.notes:
        parts.append("## Notes\n\n" + "\n".join(f"- {escape(note)}" for note in answer.notes) + "\n")
    return "\n".join(parts)


def write_answer(answer: Answer, folder: Path, over: str) -> None:
    """Write one answer's files to `folder`. Other questions' answers in the folder stay.

    over: which encoders and texts it is about, in words. Raises `UserError` where the folder cannot be written.
    """
    texts = {f"{answer.name}.md": markdown(answer)}
    texts |= {f"{name}.csv": csv_text(table) for name, table in answer.frames.items()}
    try:
        for name, text in texts.items():
            write_text(folder / name, text)
        write_figures(answer.drawings, folder / "figures")
        kept = [other for other in _written(folder / ANSWERS) if other["name"] != answer.name]
        write_json(folder / ANSWERS, {"version": 1, "answers": [*kept, as_json(answer, over)]})
    except OSError as error:
        raise UserError(f"Cannot write to {folder}: {error.strerror}. Name another with out=<folder>.") from error


def as_json(answer: Answer, over: str) -> dict[str, Any]:
    """Return what the report shows of an answer; figures as base64 of their svg, sizes in pixels."""
    return {
        "name": answer.name,
        "title": answer.title,
        "over": over,
        "grids": [asdict(grid) for grid in answer.grids],
        "figures": [figure_words(drawing) for drawing in answer.drawings],
        "notes": answer.notes,
    }


def _written(path: Path) -> list[dict[str, Any]]:
    """The answers that are there already; a file that cannot be read counts as none, since it is replaced."""
    try:
        answers = json.loads(path.read_text(encoding="utf-8"))["answers"]
        return [answer for answer in answers if "name" in answer]
    except (OSError, ValueError, KeyError, TypeError):
        return []
