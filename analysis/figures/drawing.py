"""One figure with the words that go with it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawing:
    """`name` is the file's name; `title` a heading; `caption` what the figure shows; `alt` its content in words, for a
    reader who cannot see it."""

    name: str
    title: str
    caption: str
    alt: str
    figure: "Figure"
