"""Loss while training, and the gain on held-out texts; by objective, since losses of two objectives do not compare."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import MOST_DESIGNS
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from analysis.statistics.arrays import Floats
from records.progress import logged
from representation.encoders_studied import Studied
from representation.figures import look, not_drawn
from representation.texts import Texts

PLACE = 70
NAME = "loss"
WIDTH = 5  # steps of the running mean that is drawn
ENDS = 10  # steps of the first and last mean of the table
Curves = dict[str, dict[str, Floats]]  # objective -> label -> loss of each step


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None:
    """Return the curves and a table of the runs whose logs are there; None where no encoder has any."""
    curves: Curves = {}
    for studied in encoders:
        folder = studied.candidate.folder
        if folder is not None and len(loss := np.array(logged(folder, "loss"))):
            curves.setdefault(str(studied.config["objective"]["name"]), {})[studied.label] = loss
    if not curves:
        return None
    held_out = {s.label: s.candidate.manifest.get("held_out") or {} for s in encoders if s.trained}
    runs = [(objective, label, loss) for objective, runs in curves.items() for label, loss in runs.items()]
    rows = [
        {"objective": objective, "run": label, "step": step, "loss": value}
        for objective, label, loss in runs
        for step, value in enumerate(loss)
    ]
    grid = _grid(runs, held_out)
    return Answer(NAME, "Loss while training", [grid], lambda: [_drawing(curves)], {NAME: pd.DataFrame(rows)})


def _grid(runs: list[tuple[str, str, Floats]], held_out: dict[str, Any]) -> Grid:
    rows = []
    for objective, label, loss in runs:
        kept = held_out.get(label, {})
        before, after = kept.get("before", {}), kept.get("after", {})
        gains = "; ".join(f"{name} {before[name]:.3f} -> {after[name]:.3f}" for name in before if name in after)
        ends = [f"{part.mean():.3f}" for part in (loss[:ENDS], loss[-ENDS:])]
        rows.append([Cell(text) for text in (label, objective, gains or "-", f"{len(loss):,}", *ends)])
    caption = (
        f"Loss of each run over its first and last {ENDS} steps; what was measured on held-out texts before and after."
    )
    header = ["Run", "Objective", "Held out", "Steps", "First", "Last"]
    return Grid(NAME, caption, header, rows, left=3, title="Loss while training")


def _drawing(curves: Curves) -> Drawing:
    shown = {objective: dict(list(runs.items())[:MOST_DESIGNS]) for objective, runs in curves.items()}
    names = short_names([label for runs in shown.values() for label in runs])
    figure = canvas(3.0 * len(shown) + inches(names.values()) + 0.8, 2.9)
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, (objective, runs) in zip(panels, shown.items(), strict=True):
        for k, (label, loss) in enumerate(runs.items()):
            smooth = pd.Series(loss).rolling(WIDTH, min_periods=1).mean()
            axes.plot(smooth.index + 1, smooth, markevery=max(1, len(loss) // 6), label=names[label], **look(k, 4))
        axes.set_title(objective)
        axes.set_xlabel("step")
        axes.grid(axis="y")
        axes.legend(fontsize=6)
    panels[0].set_ylabel("loss")
    rest = not_drawn([label for runs in curves.values() for label in list(runs)[MOST_DESIGNS:]], 0)
    caption = (
        f"InfoNCE, MNTP or SimCSE loss of each training step, as a running mean over {WIDTH} steps, of the runs named; "
        f"a panel for each objective, since their losses are no pair.{rest}"
    )
    ends = "; ".join(f"{label} {loss[-ENDS:].mean():.3f}" for runs in shown.values() for label, loss in runs.items())
    alt = f"Mean loss of the last {ENDS} steps: {ends}."
    return Drawing(NAME, "Loss while training", caption, alt, figure)
