"""Figures in the house style of `analysis`, and the words that go with one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.figures.drawing import Drawing
from analysis.figures.every import settle
from analysis.figures.fonts import families
from analysis.figures.style import house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Words:
    """Name of the file, heading, caption and description of a figure that is yet to be drawn; see `Drawing`."""

    name: str
    title: str
    caption: str
    alt: str

    def drawing(self, figure: "Figure", left_out: Iterable[str] = ()) -> Drawing:
        """The figure with its words. left_out: names that found no room, which the caption then says."""
        left = list(left_out)
        said = f" Not drawn: {'; '.join(left)}." if left else ""
        return Drawing(self.name, self.title, self.caption + said, self.alt, figure)


def styled(labels: Iterable[str], make: Callable[[], Drawing]) -> Drawing:
    """Return the drawing that `make` draws, its layout settled. labels: names whose letters need a font."""
    with house_style(families(sorted(labels))):
        drawing = make()
        settle(drawing.figure)
    return drawing
