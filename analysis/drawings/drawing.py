"""Figures -> bytes: the same figure gives the same bytes, with no date in them."""

from base64 import b64encode
from collections.abc import Callable, Container
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.drawings.style import house_style
from records.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawing:
    """`name` is the file's name; `title` a heading; `caption` what the figure shows."""

    name: str
    title: str
    caption: str
    figure: "Figure"


def drawn(make: Callable[[], list[Drawing]]) -> list[Drawing]:
    """Return what `make` draws, in the house's style, with room for every label."""
    with house_style():
        drawings = make()
        for drawing in drawings:  # once: saving in several formats would solve the layout each time
            drawing.figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.06)  # inches
            drawing.figure.draw_without_rendering()
            drawing.figure.set_layout_engine("none")
    return drawings


METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None, "ModDate": None}, "svg": {"Date": None}, "png": {}}
PIXELS = 96  # of a web page, an inch


def figure_bytes(drawing: Drawing, kind: str) -> bytes:
    """Return the figure as `pdf`, `svg` or `png`."""
    buffer = BytesIO()
    with house_style():
        drawing.figure.savefig(buffer, format=kind, metadata={"Title": drawing.title, **METADATA[kind]})
    return buffer.getvalue()


def figure_words(drawing: Drawing) -> dict[str, Any]:
    """Return what a web page shows of a figure: its words, its svg in base64, its size in pixels."""
    words = {key: getattr(drawing, key) for key in ("name", "title", "caption")}
    width, height = (round(inches * PIXELS) for inches in drawing.figure.get_size_inches())
    return words | {"svg": b64encode(figure_bytes(drawing, "svg")).decode(), "width": width, "height": height}


def figure_files(drawings: list[Drawing], pictures: Container[str] | None = None) -> dict[str, tuple[Drawing, str]]:
    """Return name of a file -> figure and kind: each figure as PDF, those of `pictures` (None: all) as PNG."""
    pdf = {f"{one.name}.pdf": (one, "pdf") for one in drawings}
    return pdf | {f"{one.name}.png": (one, "png") for one in drawings if pictures is None or one.name in pictures}


def write_figures(files: dict[str, tuple[Drawing, str]], folder: Path) -> list[Path]:
    """Write `figure_files` to `folder`; return the paths."""
    for name, (drawing, kind) in files.items():
        with replacing(folder / name) as draft:
            draft.write_bytes(figure_bytes(drawing, kind))
    return [folder / name for name in files]
