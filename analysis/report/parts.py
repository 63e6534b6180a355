"""Sections of the page: the answers, the control rule's audit, and what `python -m representation` found."""

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from analysis.analyse import Result
from analysis.control.audit import facts, verdict
from analysis.control.rule import Control
from analysis.drawings.drawing import Drawing, figure_words
from analysis.grids.grid import Grid
from analysis.grids.html import HtmlGrid, html_grid
from analysis.names import listed
from analysis.questions.question import Answer
from analysis.settings import Settings
from cli.errors import reading
from records.files import read_object

FOREIGN = "No manifests: foreign scores. Nothing shows that the designs differ in the factors alone."
SECTIONS = "sections.json"


@dataclass(frozen=True)
class Part:
    """A heading with tables, figures and notes below it. `name`: its anchor; `over`: what an answer is about."""

    title: str
    grids: list[HtmlGrid] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    name: str = ""
    over: str = ""
    tables: list[tuple[str, Markup]] = field(default_factory=list)


def answer_parts(answers: list[Answer], drawings: list[Drawing]) -> list[Part]:
    """Return a section for each answer that has a table or one of the figures `drawings`."""
    of = [[drawing for drawing in drawings if drawing.of == answer.name] for answer in answers]
    return [answer_part(*shown) for shown in zip(answers, of, strict=True) if shown[0].grids or shown[1]]


def answer_part(answer: Answer, drawings: list[Drawing]) -> Part:
    """Return the section of one answer; without tables its notes stand among those on the whole."""
    grids, notes = [html_grid(grid) for grid in answer.grids], answer.notes if answer.grids else []
    title = answer.title or [*(grid.title for grid in grids), *(one.title for one in drawings)][0]
    return Part(title, grids, notes, [page_figure(figure_words(one)) for one in drawings], f"section-{answer.name}")


def manifest_audit(result: Result) -> list[Part]:
    """Return the parts of the audit; one part where no design has a manifest."""
    material = result.material
    cells = {label: design for label, design in material.designs.items() if design.runs}
    if not cells:
        return [Part("Control", notes=[FOREIGN])]
    control = Control(footnotes=material.footnotes, notes=result.control_notes)
    bare = [label for label in material.designs if label not in cells]
    lines = [verdict(cells, material.settings.factors, control)]
    lines += [f"Without a manifest, so nothing is known of them: {listed(bare, 10)}."] if bare else []
    if material.references:
        lines.append(f"The {len(material.references)} untrained references were held to the same rule.")
    parts = [Part("Control", notes=lines)]
    for title, items in facts(control, cells, material.settings.factors).items():
        grids = [html_grid(item) for item in items if isinstance(item, Grid)]
        parts.append(Part(title, grids, [item for item in items if isinstance(item, str)]))
    return parts


def representation_parts(settings: Settings) -> list[Part]:
    """Return the sections in the folder, if any. Raises UserError for what that command has not written."""
    if settings.representation is None:
        return []
    path = settings.representation / SECTIONS
    with reading(path, "Run python -m representation again."):
        return [_part(section) for section in read_object(path)["sections"]]


def _part(section: dict[str, Any]) -> Part:
    return Part(
        section["title"],
        notes=section["notes"],
        figures=[page_figure(figure) for figure in section["figures"]],
        name=f"representation-{section['name']}",
        over=section["over"],
        tables=[(table["title"], Markup(table["html"])) for table in section["tables"]],
    )


def page_figure(words: dict[str, Any]) -> dict[str, Any]:
    """Return `figure_words` as the page shows them: the SVG within it is sharp, and its ids clash with no other's."""
    shown = {key: words[key] for key in ("name", "title", "caption", "width", "height")}
    source = f"data:image/svg+xml;base64,{words['svg']}"
    return shown | {"source": source}
