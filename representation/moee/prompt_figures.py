"""Figures of the prompts: scores of each prompt as dots, and how similarities under any two prompts correlate."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.drawings.heat import colour_bar, heat
from analysis.drawings.style import BLACK, house_style, mark
from representation.figures import legend, numbers
from representation.moee.pair_tasks import Floats
from representation.moee.prompt_stability import correlation_matrix


@house_style()
def score_spread(frame: pd.DataFrame, over: str) -> Drawing:
    """One dot per prompt, one column per reading, one panel per encoder, as MoEE's figure 5."""
    labels, readings = list(frame["encoder"].unique()), list(frame["reading"].unique())
    prompts = list(frame["prompt"].unique())
    means = frame.pivot_table(index=["encoder", "reading"], columns="prompt", values="score", sort=False)
    figure = Figure(figsize=(1.2 + 2.2 * len(labels), 2.8), layout="constrained")
    panels = figure.subplots(1, len(labels), sharey=True, squeeze=False)[0]
    for axes, label in zip(panels, labels, strict=True):
        for x, reading in enumerate(readings):
            values = means.loc[(label, reading), prompts].to_numpy()
            for k, (y, place) in enumerate(zip(values, np.linspace(-0.25, 0.25, len(prompts)), strict=True)):
                axes.plot(x + place, y, mark(k).shape, color=mark(k).colour, markersize=4, label=prompts[k])
            axes.plot([x - 0.3, x + 0.3], [np.median(values)] * 2, color=BLACK, linewidth=0.8)
        axes.set_xticks(range(len(readings)), readings)
        axes.set_title(label)
        axes.grid(axis="y")
    panels[0].set_ylabel("score")
    legend(figure, panels[0], most=len(prompts))
    caption = (
        f"Score of {len(prompts)} prompts (marks) by reading, mean over tasks; {over}. "
        "The line is the median over prompts: the narrower the column, the steadier the reading."
    )
    ranges = ", ".join(f"{label} {r}: {v.min():.3f} to {v.max():.3f}" for (label, r), v in means.iterrows())
    return Drawing("prompts_scores", "Scores under each prompt", caption, f"Range over prompts: {ranges}.", figure)


@house_style()
def correlation_map(
    label: str, of_tasks: list[dict[str, Floats]], prompts: list[str], over: str, place: int
) -> Drawing:
    """Spearman correlations of the pairs' similarities between all prompts of HS and RW, as MoEE's figure 4."""
    shown = [name for name in of_tasks[0] if name in ("HS", "RW")]
    matrix = np.mean([correlation_matrix({name: readings[name] for name in shown}) for readings in of_tasks], axis=0)
    names = [f"{reading} {prompt}" for reading in shown for prompt in prompts]
    figure = Figure(figsize=(1.9 + 0.27 * len(names), 1.5 + 0.27 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    mesh = heat(axes, matrix, (min(0.0, float(np.nanmin(matrix))), 1), diverging=False, width=0.4)
    numbers(axes, matrix, lambda value: f"{value:.2f}".replace("0.", "."), 5)
    for border in range(len(prompts), len(names), len(prompts)):  # between the readings
        axes.axhline(border - 0.5, color=BLACK, linewidth=0.8)
        axes.axvline(border - 0.5, color=BLACK, linewidth=0.8)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.set_aspect("equal")
    colour_bar(figure, mesh, axes, "Spearman correlation", shrink=0.7)
    axes.set_title(label)
    caption = (
        f"Spearman correlation of the pairs' similarities under two prompts, HS and RW of {label}, mean over tasks; "
        f"{over}. Upper left HS with HS, lower right RW with RW, the other blocks HS with RW."
    )
    apart = ~np.eye(len(prompts), dtype=bool)
    blocks = [matrix[k * len(prompts) :, k * len(prompts) :][: len(prompts), : len(prompts)] for k in range(len(shown))]
    means = ", ".join(f"{name} {block[apart].mean():.2f}" for name, block in zip(shown, blocks, strict=True))
    title = f"Agreement between prompts: {label}"
    return Drawing(f"prompts_agreement_{place}", title, caption, f"Mean between two prompts: {means}.", figure)
