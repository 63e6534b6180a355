"""The figures of every analysis, in the order in which they are shown. A new one is a line here."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from analysis.drawings.drawing import Drawing
from analysis.drawings.style import families, house_style
from analysis.figures.cost_score import cost_score
from analysis.figures.critical_difference import critical_difference
from analysis.figures.forest import forest, forest_by_type
from analysis.figures.heat_map import heat_map
from analysis.figures.tasks import before_after, task_dots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.analyse import Result

# Each returns None where it has nothing to draw, such as costs where no manifest states any.
FIGURES: tuple[Callable[["Result"], Drawing | None], ...] = (
    forest,
    forest_by_type,
    heat_map,
    critical_difference,
    task_dots,
    before_after,
    cost_score,
)


def draw(result: "Result") -> list[Drawing]:
    """Return the figures that have something to show."""
    names = {str(name) for column in ("design", "task", "type") for name in result.frame[column].unique()}
    with house_style(families(sorted(names))):
        drawings = [drawing for make in FIGURES if (drawing := make(result)) is not None]
        for drawing in drawings:
            settle(drawing.figure)
    return drawings


def settle(figure: "Figure") -> None:
    """Make room for every label once; saving in several formats would solve the layout anew each time."""
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.06)  # inches
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
