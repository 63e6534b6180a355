"""Answers -> Markdown, csv, figures, and answers.json, which `python -m analysis ... representation=<folder>` reads."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.drawings.drawing import figure_words, write_figures
from analysis.grids.markdown import escape, markdown_grid
from analysis.questions.question import Answer
from cli.errors import UserError
from records.files import write_json, write_text

ANSWERS = "answers.json"


def markdown(answer: Answer) -> str:
    """Return an answer as Markdown: tables, figures by name with their captions, notes."""
    parts = [f"# {escape(answer.title)}\n"]
    parts += [f"## {escape(grid.title)}\n\n{markdown_grid(grid)}" for grid in answer.grids]
    for drawing in answer.drawings:
        parts.append(f"## {escape(drawing.title)}\n\n![](figures/{drawing.name}.png)\n\n{escape(drawing.caption)}\n")
    parts += [f"- {escape(note)}" for note in answer.notes]
    return "\n".join(parts)


def write_answer(answer: Answer, folder: Path, over: str) -> None:
    """Write one answer's files to `folder`. Other questions' answers in the folder stay.

    over: which encoders and texts it is about, in words. Raises `UserError` where the folder cannot be written.
    """
    try:
        write_text(folder / f"{answer.name}.md", markdown(answer))
        for name, frame in answer.frames.items():
            write_text(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
        write_figures(answer.drawings, folder / "figures")
        kept = [other for other in _written(folder / ANSWERS) if other["name"] != answer.name]
        own: dict[str, Any] = {"name": answer.name, "title": answer.title, "over": over, "notes": answer.notes}
        own["grids"] = [asdict(grid) for grid in answer.grids]
        own["figures"] = [figure_words(drawing) for drawing in answer.drawings]
        write_json(folder / ANSWERS, {"version": 1, "answers": [*kept, own]})
    except OSError as error:
        raise UserError(f"Cannot write to {folder}: {error.strerror}. Name another with out=<folder>.") from error


def _written(path: Path) -> list[dict[str, Any]]:
    """The answers that are there already; a file that cannot be read counts as none, since it is replaced."""
    try:
        answers: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["answers"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return answers
