"""Figures of the prompts: scores of each prompt as dots, and how similarities under any two prompts correlate."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.drawings.heat import colour_bar
from analysis.drawings.style import BLACK
from representation.figures import likeness_map, mark_panels, tables_of
from representation.moee.pair_tasks import Floats
from representation.moee.prompt_stability import correlation_matrix


def score_spread(frame: pd.DataFrame, over: str) -> Drawing:
    """Draw one mark per prompt, one column per reading, one panel per encoder, as MoEE's figure 5."""
    panels = tables_of(frame, "prompt", "reading", "score")
    count = frame["prompt"].nunique()
    caption = (
        f"Score of {count} prompts (marks) by reading, mean over tasks; {over}. "
        "The line is the median over prompts: the narrower the column, the steadier the reading."
    )
    ranges = ", ".join(
        f"{label} {reading}: {scores.min():.3f} to {scores.max():.3f}"
        for label, table in panels.items()
        for reading, scores in table.items()
    )
    figure = mark_panels(panels, len(panels), ("score", ""), medians=True)
    return Drawing("prompts_scores", "Scores under each prompt", caption, f"Range over prompts: {ranges}.", figure)


def correlation_map(
    label: str, of_tasks: list[dict[str, Floats]], prompts: list[str], over: str, place: int
) -> Drawing:
    """Draw Spearman correlations of the pairs' similarities between all prompts of HS and RW, as MoEE's figure 4."""
    shown, count = [name for name in of_tasks[0] if name in ("HS", "RW")], len(prompts)
    matrix = np.mean([correlation_matrix({name: readings[name] for name in shown}) for readings in of_tasks], axis=0)
    names = [f"{reading} {prompt}" for reading in shown for prompt in prompts]
    figure = Figure(figsize=(1.9 + 0.27 * len(names), 1.5 + 0.27 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    mesh = likeness_map(axes, matrix, float(np.nanmin(matrix)), 5)
    for border in range(count, len(names), count):  # between the readings
        axes.axhline(border - 0.5, color=BLACK, linewidth=0.8)
        axes.axvline(border - 0.5, color=BLACK, linewidth=0.8)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    colour_bar(figure, mesh, axes, "Spearman correlation", shrink=0.7)
    axes.set_title(label)
    caption = (
        f"Spearman correlation of the pairs' similarities under two prompts, HS and RW of {label}, mean over tasks; "
        f"{over}. Upper left HS with HS, lower right RW with RW, the other blocks HS with RW."
    )
    blocks = matrix.reshape(len(shown), count, len(shown), count)
    apart = ~np.eye(count, dtype=bool)
    means = ", ".join(f"{name} {blocks[k, :, k][apart].mean():.2f}" for k, name in enumerate(shown))
    title = f"Agreement between prompts: {label}"
    return Drawing(f"prompts_agreement_{place}", title, caption, f"Mean between two prompts: {means}.", figure)
