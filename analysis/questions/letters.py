"""Names whose letters pdflatex or the fonts at hand lack, in the notes."""

from collections.abc import Iterable

from analysis.drawings.style import undrawn
from analysis.grids.latex_fit import beyond_pdflatex
from analysis.names import listed
from analysis.questions.question import Answer, Material

PLACE = 35
MOST = 8  # letters named


def answer(material: Material) -> Answer:
    """Return the notes alone."""
    return Answer("letters", notes=letter_notes(names_in(material), material.settings.figures), main=True, aside=True)


def names_in(material: Material) -> set[str]:
    """Return the names of designs, tasks and types."""
    return {str(name) for column in ("design", "task", "type") for name in material.frame[column].unique()}


def letter_notes(names: Iterable[str], drawn: bool) -> list[str]:
    """Return the notes on the names of designs, tasks and types; drawn: whether there are figures."""
    texts = sorted(set(names))
    notes, beyond = [], beyond_pdflatex("".join(texts))
    if beyond:
        notes.append(
            f"table.tex: pdflatex cannot set {listed(beyond, MOST)} and prints their numbers in Unicode, in brackets;"
            " lualatex or xelatex, with a font that has them, prints the names."
        )
    boxes = undrawn(texts) if drawn else []
    if boxes:
        notes.append(
            f"Figures: no font of this machine has {listed(boxes, MOST)}, so boxes stand for them; install one that"
            " has, such as Noto Sans CJK, and remove matplotlib's font cache."
        )
    return notes
