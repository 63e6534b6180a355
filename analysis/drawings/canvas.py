"""An empty figure, panels, axes of a list, a legend: what several figures begin and end with. matplotlib comes late."""

from typing import Any

from analysis.formats import typeset


def canvas(width: float, height: float) -> Any:
    """Return an empty figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def panel_axes(figure: Any, count: int, across: int, **shared: Any) -> list[Any]:
    """Return `count` axes of a figure, so many across; the rest of the last row is hidden. shared: sharex, sharey."""
    grid = figure.subplots(-(-count // across), across, squeeze=False, **shared).ravel()
    for axes in grid[count:]:
        axes.set_visible(False)
    return list(grid[:count])


def score_ticks(axis: Any) -> None:
    """Print the numbers at an axis of scores in percent."""
    axis.set_major_formatter(lambda value, _: typeset(f"{100 * round(value, 9):g}"))


def list_axes(axes: Any, rows: int, ticks: int) -> None:
    """Set axes to a list of rows, the first on top, with at most so many ticks and lines across, which are scores."""
    score_ticks(axes.xaxis)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=ticks)


def legend(figure: Any, looks: dict[str, dict[str, Any]], **place: Any) -> None:
    """Draw a legend. looks: label -> how its line or mark is drawn; place: as `Figure.legend` takes it."""
    from matplotlib.lines import Line2D

    figure.legend(handles=[Line2D([], [], label=label, **look) for label, look in looks.items()], **place)
