"""Sections -> Markdown, csv, figures, and sections.json, which the report of `python -m analysis` shows."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from analysis.drawings.drawing import figure_files, figure_words, write_figures
from analysis.render import Section, Table, markdown_section, texts
from cli.errors import UserError
from records.files import read_object, write_json, write_text

SECTIONS = "sections.json"


def write_section(section: Section, folder: Path, over: str) -> str:
    """Write one section's files to `folder`, where others stay; return its Markdown.

    over: which encoders and texts it is about, in words. Raises `UserError` where the folder cannot be written.
    """
    drawings = section.draw()
    text = markdown_section(section, drawings)
    write_text(folder / f"{section.name}.md", text)
    for name, frame in section.frames.items():
        write_text(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
    write_figures(figure_files(drawings), folder / "figures")
    kept = [other for other in _written(folder / SECTIONS) if other["name"] != section.name]
    own: dict[str, Any] = {"name": section.name, "title": section.title, "over": over, "notes": section.notes}
    own["tables"] = [_stored(table) for table in section.tables]
    own["figures"] = [figure_words(drawing) for drawing in drawings]
    write_json(folder / SECTIONS, {"version": 2, "sections": [*kept, own]})
    return text


def _stored(table: Table) -> dict[str, Any]:
    """Return a table as its texts, which the report escapes: a file could hold any HTML."""
    about = {"name": table.name, "title": table.title, "caption": table.words, "left": table.left}
    return about | {"footnotes": list(table.footnotes), **texts(table, again=True).to_dict("tight", index=False)}


def _written(path: Path) -> list[dict[str, Any]]:
    """The sections that are there already; a file that cannot be read counts as none, since it is replaced."""
    with suppress(UserError, KeyError):
        sections: list[dict[str, Any]] = read_object(path)["sections"]
        return sections
    return []
