"""Result and figures -> report.html: one file, no network."""

from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from analysis.analyse import Result
from analysis.control.audit import facts, verdict
from analysis.drawings.drawing import Drawing, figure_words
from analysis.formats import typeset
from analysis.names import listed
from analysis.render import Table, html
from analysis.settings import Settings
from analysis.tables.pairs import LEADING
from cli.errors import reading
from records.files import read_object

HERE = Path(__file__).resolve().parent
SECTIONS = "sections.json"
FOREIGN = "No manifests: foreign scores. Nothing shows that the designs differ in the factors alone."
Part = dict[str, Any]  # name (its anchor), title, over, tables (title, html), figures, notes


def report_page(result: Result, drawings: dict[str, list[Drawing]]) -> str:
    """Return the text of the page: verdict, leading figure and means, then one section after another."""
    templates = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates.filters["minus"] = typeset
    every = [one for some in drawings.values() for one in some]
    parts = [
        _part(
            f"section-{section.name}",
            section.title,
            section.tables,
            [figure_words(one) for one in drawings.get(section.name, []) if one.name != LEADING],
            section.notes,
        )
        for section in result.sections
    ]
    return templates.get_template("page.html.j2").render(
        title=f"{len(result.compared.designs)} designs on {len(result.compared.matrix)} tasks",
        verdict=result.verdict,
        leading=[figure_words(one) for one in every if one.name == LEADING],
        parts=parts,
        folded=[*representation_parts(result.compared.settings), manifest_audit(result)],
        notes=result.notes,
    )


def _part(name: str, title: str, tables: list[Table], figures: list[dict[str, Any]], notes: list[str]) -> Part:
    shown = [(table.title if table.title != title else "", Markup(html(table))) for table in tables]
    return {"name": name, "title": title, "over": "", "tables": shown, "figures": figures, "notes": notes}


def manifest_audit(result: Result) -> Part:
    """Return the audit of the control rule, or that no design has a manifest."""
    compared = result.compared
    cells = {label: design for label, design in compared.designs.items() if design.runs}
    if not cells:
        return _part("audit", "What is compared", [], [], [FOREIGN])
    bare = [label for label in compared.designs if label not in cells]
    lines = [verdict(cells, compared.settings.factors, result.rule)]
    lines += [f"Without a manifest, so nothing is known of them: {listed(bare, 10)}."] if bare else []
    found = facts(result.rule, cells, compared.settings.factors)
    lines += [f"{title}: {item}" for title, items in found.items() for item in items if isinstance(item, str)]
    tables = [item for items in found.values() for item in items if isinstance(item, Table)]
    return _part("audit", "What is compared", tables, [], lines)


def representation_parts(settings: Settings) -> list[Part]:
    """Return the sections in the folder, if any. Raises UserError for what that command has not written."""
    if settings.representation is None:
        return []
    with reading(settings.representation / SECTIONS, "Run python -m representation again."):
        return [_held(section) for section in read_object(settings.representation / SECTIONS)["sections"]]


def _held(section: dict[str, Any]) -> Part:
    tables = []
    for of in section["tables"]:
        frame = pd.DataFrame(of["data"], columns=of["columns"], dtype=str)
        tables.append(Table(of["name"], of["title"], of["caption"], frame, left=of["left"], footnotes=of["footnotes"]))
    part = _part(f"representation-{section['name']}", section["title"], tables, section["figures"], section["notes"])
    return part | {"over": section["over"]}
