"""How did the loss fall, and what did held-out texts gain? By objective, since losses of two objectives are no pair."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import MOST_DESIGNS, mark
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from representation.figures import Words, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from representation.encoders_studied import Subject
    from representation.texts import Texts


Floats = NDArray[np.float64]


def logged_loss(folder: Path) -> Floats:
    """[steps] loss of each step, in order; a step that was run again after an interruption counts as it was last run.

    folder: of the run. Empty where nothing was logged.
    """
    found: dict[int, float] = {}
    for path in sorted(folder.glob("logs/attempt=*/metrics.csv"), key=_attempt):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row.get("loss"):
                    found[int(row["step"])] = float(row["loss"])
    return np.array([found[step] for step in sorted(found)])


def smoothed(values: Floats, width: int) -> Floats:
    """[steps] mean of each value and of the `width` - 1 before it, of fewer at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - width)
    smooth: Floats = (sums[ends] - sums[starts]) / (ends - starts)
    return smooth


def _attempt(path: Path) -> int:
    return int(path.parent.name.partition("=")[2])


NAME = "loss"
WIDTH = 5  # steps of the running mean that is drawn
ENDS = 10  # steps of the first and last mean of the table
Curves = dict[str, dict[str, Floats]]  # objective -> label -> loss of each step


def answer(subjects: "list[Subject]", texts: "Texts", settings: dict[str, Any]) -> Answer | None:
    """Return the curves and a table of the runs whose logs are there; None where no subject has any."""
    import pandas as pd

    curves: Curves = {}
    for subject in subjects:
        folder = subject.candidate.folder
        if folder is not None and len(loss := logged_loss(folder)):
            curves.setdefault(str(subject.config["objective"]["name"]), {})[subject.label] = loss
    if not curves:
        return None
    held_out = {s.label: s.candidate.manifest.get("held_out") or {} for s in subjects if s.trained}
    labels = [label for own in curves.values() for label in own]
    rows = [
        {"objective": objective, "run": label, "step": step, "loss": value}
        for objective, own in curves.items()
        for label, losses in own.items()
        for step, value in enumerate(losses)
    ]
    drawing = styled(labels, lambda: _drawn(curves))
    return Answer(
        NAME, "Loss while training", [_grid(curves, held_out)], lambda: [drawing], {NAME: pd.DataFrame(rows)}, []
    )


def _grid(curves: Curves, held_out: dict[str, Any]) -> Grid:
    rows = []
    for objective, own in curves.items():
        for label, loss in own.items():
            kept = held_out.get(label, {})
            before, after = kept.get("before", {}), kept.get("after", {})
            said = "; ".join(f"{name} {before[name]:.3f} -> {after[name]:.3f}" for name in before if name in after)
            ends = [f"{part.mean():.3f}" for part in (loss[:ENDS], loss[-ENDS:])]
            rows.append([Cell(text) for text in (label, objective, said or "-", f"{len(loss):,}", *ends)])
    caption = (
        f"Loss of each run over its first and last {ENDS} steps; what was measured on held-out texts before and after."
    )
    header = ["Run", "Objective", "Held out", "Steps", "First", "Last"]
    return Grid(NAME, caption, header, rows, left=3, title="Loss while training")


def _drawn(curves: Curves) -> Drawing:
    from matplotlib.figure import Figure

    shown = {objective: dict(list(own.items())[:MOST_DESIGNS]) for objective, own in curves.items()}
    names = short_names([label for own in shown.values() for label in own])
    figure = Figure(figsize=(3.0 * len(shown) + inches(names.values()) + 0.8, 2.9), layout="constrained")
    _panels(figure, shown, names)
    caption = (
        f"InfoNCE, MNTP or SimCSE loss of each training step, as a running mean over {WIDTH} steps, of the runs named; "
        "a panel for each objective, since their losses are no pair."
    )
    ends = "; ".join(f"{label} {own[label][-ENDS:].mean():.3f}" for own in shown.values() for label in own)
    words = Words(NAME, "Loss while training", caption, f"Mean loss of the last {ENDS} steps: {ends}.")
    return words.drawing(figure, [label for own in curves.values() for label in list(own)[MOST_DESIGNS:]])


def _panels(figure: "Figure", shown: Curves, names: dict[str, str]) -> None:
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, (objective, own) in zip(panels, shown.items(), strict=True):
        for k, (label, loss) in enumerate(own.items()):
            look = mark(k)
            axes.plot(range(1, len(loss) + 1), smoothed(loss, WIDTH), color=look.colour, marker=look.shape,
                      markevery=max(1, len(loss) // 6), markersize=4, linewidth=1.2, label=names[label])  # fmt: skip
        axes.set_title(objective)
        axes.set_xlabel("step")
        axes.grid(axis="y")
        axes.legend(fontsize=6)
    panels[0].set_ylabel("loss")
