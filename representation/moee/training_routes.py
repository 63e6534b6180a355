"""Changes of the routes of adapter=mixse over training, as the run's own log has it step by step."""

from pathlib import Path
from typing import Any

import pandas as pd

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import MOST_DESIGNS
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from records.progress import logged
from representation.figures import legend, look, not_drawn
from representation.loss import ENDS

SHARE, ENTROPY, BALANCE = "share of expert {}", "routing entropy", "balance loss"  # columns of the log
COLUMNS = {"entropy": ENTROPY, "balance": BALANCE}
PANELS = {"largest": "largest share", "entropy": "entropy"}


def logged_routes(folder: Path | None, experts: list[str]) -> list[dict[str, Any]]:
    """Return a row per step of a run: step from 1, entropy, balance, the share of each of `experts`, the largest, and
    whose that is. experts: names that begin with the expert's number.

    Empty where the log has no routes: of an older run, one without a log, or one without a step.
    """
    if folder is None or not len(logged(folder, ENTROPY)):
        return []
    table = pd.DataFrame({name: logged(folder, SHARE.format(name.partition(" ")[0])) for name in experts})
    largest = {"largest": table.max(axis=1), "of": table.idxmax(axis=1)}
    further = {name: logged(folder, column) for name, column in COLUMNS.items()}
    rows: list[dict[str, Any]] = table.add_prefix("share ").assign(**largest, **further).to_dict("records")
    return [{"step": step, **row} for step, row in enumerate(rows, 1)]


def change_grid(frame: pd.DataFrame) -> Grid:
    """One row per encoder: means over its first and its last steps."""
    rows = []
    for encoder, steps in frame.groupby("encoder", sort=False):
        ends = steps.head(ENDS), steps.tail(ENDS)
        means = [f"{score(a, 3)} to {score(b, 3)}" for a, b in zip(*(_means(part) for part in ends), strict=True)]
        changes = int((steps["of"] != steps["of"].shift()).sum()) - 1
        rows.append(
            [Cell(text) for text in (str(encoder), str(len(steps)), *means, ends[1]["of"].iloc[-1], f"{changes}")]
        )
    caption = (
        f"Routers while they were trained, on the tokens of each step, over all sublayers: mean over the first {ENDS} "
        f"steps to mean over the last {ENDS}. Entropy and largest share as above. Balance loss: of a text, before its "
        "weight; 1 where experts are used alike. Largest: the expert of largest share in the last step, and how often "
        "another one came to have it."
    )
    header = ["Encoder", "Steps", "Entropy", "Largest share", "Balance loss", "Largest", "Changes"]
    return Grid("routing-training", caption, header, rows, left=1, title="Routes over training")


def _means(steps: pd.DataFrame) -> list[float]:
    return [float(steps[name].mean()) for name in ("entropy", "largest", "balance")]


def change_drawing(frame: pd.DataFrame) -> Drawing:
    """One line per encoder in a panel for the largest share and one for the entropy."""
    runs = {str(encoder): steps for encoder, steps in frame.groupby("encoder", sort=False)}
    shown = dict(list(runs.items())[:MOST_DESIGNS])
    names = short_names(shown)
    figure = canvas(6.4 + inches(names.values()), 2.8)
    panels = figure.subplots(1, len(PANELS))
    for axes, (name, label) in zip(panels, PANELS.items(), strict=True):
        for k, (encoder, steps) in enumerate(shown.items()):
            every = max(1, len(steps) // 6)
            axes.plot(steps["step"], steps[name], markevery=every, label=names[encoder], **look(k, 4))
        axes.set_xlabel("step")
        axes.set_ylabel(label)
        axes.grid(axis="y")
    legend(figure, panels[0])
    caption = (
        "Share of the expert that is the first of most tokens, and entropy of the routing weights over that of even "
        f"ones, of the tokens of each training step.{not_drawn(runs, MOST_DESIGNS)}"
    )
    ends = "; ".join(f"{encoder} {steps['largest'].iloc[-1]:.2f}" for encoder, steps in shown.items())
    return Drawing(
        "routing_training", "Routes over training", caption, f"Largest share in the last step: {ends}.", figure
    )
