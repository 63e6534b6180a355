"""Result and figures -> report.html: one file, no network."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from analysis.analyse import Result
from analysis.drawings.drawing import Drawing
from analysis.grids.formats import typeset
from analysis.questions.pair_figures import LEADING
from analysis.report.parts import answer_part, answer_parts, manifest_audit, representation_parts

HERE = Path(__file__).resolve().parent


def report_page(result: Result, drawings: list[Drawing]) -> str:
    """Return the text of the page."""
    templates = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates.filters["minus"] = typeset
    notes, further = result.page_notes()
    leading = [drawing for drawing in drawings if drawing.name == LEADING]
    return templates.get_template("page.html.j2").render(
        title=f"{len(result.material.designs)} designs on {len(result.material.matrix)} tasks",
        verdict=result.verdict,
        first=answer_part(result.answers[0], leading),
        notes=notes,
        parts=[
            *answer_parts(result.answers[1:], [drawing for drawing in drawings if drawing not in leading]),
            *representation_parts(result.material.settings),
        ],
        audit=manifest_audit(result),
        further=further,
    )
