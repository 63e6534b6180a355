"""Figures of the prompts: scores of each prompt as dots, and how similarities under any two prompts correlate."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.figures.drawing import Drawing
from analysis.figures.style import BLACK, house_style, mark
from representation.mixtures.prompt_stability import correlation_matrix
from representation.mixtures.resampled import Floats


@house_style()
def score_spread(frame: pd.DataFrame, over: str) -> Drawing:
    """A dot for each prompt, a column for each reading, a panel for each encoder, as MoEE's figure 5."""
    from matplotlib.figure import Figure

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
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles[: len(prompts)], names[: len(prompts)], loc="outside right upper")
    caption = (
        f"Score of {len(prompts)} prompts (marks) by reading, mean over tasks; {over}. "
        "The line is the median over prompts: the narrower the column, the steadier the reading."
    )
    ranges = ", ".join(f"{label} {r}: {v.min():.3f} to {v.max():.3f}" for (label, r), v in means.iterrows())
    return Drawing("prompts_scores", "Scores under each prompt", caption, f"Range over prompts: {ranges}.", figure)


@house_style()
def correlation_map(label: str, held: list[dict[str, Floats]], prompts: list[str], over: str, place: int) -> Drawing:
    """Spearman correlations of the pairs' similarities between all prompts of HS and RW, as MoEE's figure 4."""
    from matplotlib.figure import Figure

    shown = [name for name in held[0] if name in ("HS", "RW")]
    matrix = np.mean([correlation_matrix({name: own[name] for name in shown}) for own in held], axis=0)
    names = [f"{reading} {prompt}" for reading in shown for prompt in prompts]
    figure = Figure(figsize=(1.9 + 0.27 * len(names), 1.5 + 0.27 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    _cells(figure, axes, matrix, names, len(prompts))
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


def _cells(figure: Any, axes: Any, matrix: Floats, names: list[str], block: int) -> None:
    """Quads with their numbers; a line parts the readings."""
    edges = np.arange(len(names) + 1) - 0.5
    low = min(0.0, float(np.nanmin(matrix)))
    quads = axes.pcolormesh(edges, edges, matrix, cmap="Blues", vmin=low, vmax=1, edgecolors="white", linewidth=0.4)
    for row, column in np.ndindex(matrix.shape):
        dark = matrix[row, column] > 0.6
        axes.text(
            column,
            row,
            f"{matrix[row, column]:.2f}".replace("0.", "."),
            ha="center",
            va="center",
            fontsize=5,
            color="white" if dark else BLACK,
        )
    for place in range(block, len(names), block):
        axes.axhline(place - 0.5, color=BLACK, linewidth=0.8)
        axes.axvline(place - 0.5, color=BLACK, linewidth=0.8)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    bar = figure.colorbar(quads, ax=axes, shrink=0.7, pad=0.02)
    bar.set_label("Spearman correlation")
    bar.outline.set_visible(False)
