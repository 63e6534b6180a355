"""Figures of the model card: the loss while training and the scores by type of task, in the house's style."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.drawings.canvas import canvas, list_axes
from analysis.drawings.drawing import Drawing, drawn, figure_bytes
from analysis.drawings.fit import inches
from analysis.drawings.style import BLUE, GREY, LINE
from analysis.grids.formats import Numbers
from records.progress import logged

FOLDER = "figures"
WIDTH = 5  # steps of the running mean


def write_figures(run: Path, scores: Mapping[str, Sequence[float]], folder: Path) -> str:
    """Write the figures of a run below `folder`; return what its card says of them, also of one that is not there.

    scores: type of task -> main scores.
    """
    loss = logged(run, "loss")
    drawings = drawn([], lambda: [*([_loss(loss)] if loss else []), *([_by_type(scores)] if scores else [])])
    lines = ["## Figures"]
    for drawing in drawings:
        file = folder / FOLDER / f"{drawing.name}.png"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(figure_bytes(drawing, "png"))
        lines.append(f"![{drawing.alt}]({FOLDER}/{file.name})\n\n*{drawing.caption}*")
    if not loss:
        lines.append("No curve of the loss: the run's folder holds no log of it.")
    if not scores:
        lines.append("No figure of scores: none were given for this card.")
    return "\n\n".join(lines)


def _loss(loss: Sequence[float]) -> Drawing:
    """The loss of each step, and its mean over the last few."""
    figure = canvas(5.0, 2.4)
    axes, steps = figure.subplots(), range(1, len(loss) + 1)
    parts = [loss[max(0, step - WIDTH) : step] for step in steps]
    means = [sum(part) / len(part) for part in parts]
    axes.plot(steps, loss, color=GREY, linewidth=0.6)
    axes.plot(steps, means, color=BLUE, linewidth=1.4, marker="o", markersize=3, markevery=max(1, len(loss) // 8))
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.grid(axis="y")
    caption = f"Loss of each training step (grey) and its running mean over {WIDTH} steps."
    alt = f"Loss over {len(loss)} steps, {means[0]:.3f} at first and {means[-1]:.3f} at the end."
    return Drawing("loss", "Loss while training", caption, alt, figure)


def _by_type(scores: Mapping[str, Sequence[float]]) -> Drawing:
    """A row per type of task: each task's main score, and their mean."""
    means = {kind: sum(of_kind) / len(of_kind) for kind, of_kind in sorted(scores.items())}
    labels = [f"{kind} ({len(scores[kind])})" for kind in means]
    figure = canvas(3.6 + inches(labels), 0.8 + 1.4 * LINE * len(means))
    axes = figure.subplots()
    for row, (kind, mean) in enumerate(means.items()):
        axes.plot(scores[kind], [row] * len(scores[kind]), linestyle="none", marker="|", color=GREY, markersize=7)
        axes.plot([mean], [row], linestyle="none", marker="o", color=BLUE, markersize=5)
    list_axes(axes, len(means), 6, Numbers())
    axes.set_yticks(range(len(means)), labels)
    axes.set_xlabel("main score")
    caption = "Main score of each task (grey strokes) and their mean (dots), by type; in brackets the number of tasks."
    listing = ", ".join(f"{kind} {mean:.4f}" for kind, mean in means.items())
    return Drawing("scores", "Scores by type of task", caption, f"Means by type: {listing}.", figure)
