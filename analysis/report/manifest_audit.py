"""What is compared: the control rule's audit for the page, or a sentence where no manifest proves anything."""

from dataclasses import dataclass, field

from analysis.analyse import Result
from analysis.control.audit import facts, verdict
from analysis.control.rule import Control
from analysis.grids.grid import Grid
from analysis.grids.html import HtmlGrid, html_grid
from analysis.names import listed

FOREIGN = "No manifests: foreign scores. Nothing shows that the designs differ in the factors alone."


@dataclass(frozen=True)
class Part:
    """A heading with tables and lines below it."""

    title: str
    grids: list[HtmlGrid] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def manifest_audit(result: Result) -> list[Part]:
    """Return the parts of the audit; one part where no design has a manifest."""
    material = result.material
    cells = {label: design for label, design in material.designs.items() if design.runs}
    if not cells:
        return [Part("Control", lines=[FOREIGN])]
    control = Control(footnotes=material.footnotes, notes=result.control_notes)
    bare = [label for label in material.designs if label not in cells]
    lines = [verdict(cells, material.settings.factors, control)]
    lines += [f"Without a manifest, so nothing is known of them: {listed(bare, 10)}."] if bare else []
    if material.references:
        lines.append(f"The {len(material.references)} untrained references were held to the same rule.")
    parts = [Part("Control", lines=lines)]
    for title, items in facts(control, cells, material.settings.factors).items():
        grids = [html_grid(item) for item in items if isinstance(item, Grid)]
        parts.append(Part(title, grids, [item for item in items if isinstance(item, str)]))
    return parts
