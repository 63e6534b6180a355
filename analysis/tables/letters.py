"""What becomes of names whose letters pdflatex or the fonts at hand lack; said once, in the notes."""

from collections.abc import Iterable

from analysis.grids.latex_fit import beyond_pdflatex
from analysis.names import listed

MOST = 8  # letters named


def letter_notes(names: Iterable[str], drawn: bool) -> list[str]:
    """Return the notes on the names of designs, tasks and types; drawn: whether there are figures."""
    texts = sorted(set(names))
    notes, beyond = [], beyond_pdflatex("".join(texts))
    if beyond:
        notes.append(
            f"table.tex: pdflatex cannot set {listed(beyond, MOST)} and prints their numbers in Unicode, in brackets;"
            " lualatex or xelatex, with a font that has them, prints the names."
        )
    if drawn and not all(text.isascii() for text in texts):
        from analysis.drawings.style import undrawn

        boxes = undrawn(texts)
        if boxes:
            notes.append(
                f"Figures: no font of this machine has {listed(boxes, MOST)}, so boxes stand for them; install one that"
                " has, such as Noto Sans CJK, and remove matplotlib's font cache."
            )
    return notes
