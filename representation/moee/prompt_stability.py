"""Figures of the prompts: scores of each prompt as dots, and how similarities under any two prompts correlate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.drawings.style import BLACK, house_style, mark
from representation.moee.pair_tasks import Floats, PairTask, spearman

SLICE = 100  # samples ranked at a time, so that 28 rows of 1,400 pairs take 30 MB
NORMAL = 1.959964  # quantile of 97.5 %
Key = tuple[str, str]  # (reading or two of them, statistic)


@dataclass(frozen=True)
class Value:
    """A statistic on the data, and its jackknife interval (95 %).

    A bootstrap would not do for the spread over prompts: repeated pairs add noise of their own to every prompt's score,
    and a spread of .003 was seen below an interval of .004 to .024.
    """

    value: float
    low: float
    high: float


def measured(task: PairTask, similarities: Mapping[str, Floats], counts: Floats) -> dict[Key, Floats]:
    """Return (reading, statistic) -> [R] in each sample. similarities: reading -> [prompts, n].

    "mean", "spread": mean and standard deviation (n - 1) of the score over prompts;
    "agreement": mean Spearman correlation of the pairs' similarities between two prompts; for the key "HS-RW" between
    HS and RW, under the same prompt and under others.
    """
    found: dict[Key, Floats] = {}
    for reading, rows in similarities.items():
        scores = np.stack([task.score(row, counts) for row in rows])
        found[reading, "mean"], found[reading, "spread"] = scores.mean(axis=0), scores.std(axis=0, ddof=1)
    parts = [agreements(similarities, counts[i : i + SLICE]) for i in range(0, len(counts), SLICE)]
    return found | {(key, "agreement"): np.concatenate([part[key] for part in parts]) for key in parts[0]}


def agreements(similarities: Mapping[str, Floats], counts: Floats) -> dict[str, Floats]:
    """Return reading -> [R] mean correlation between two of its prompts, and "HS-RW" across the readings."""
    names = list(similarities)
    prompts = len(similarities[names[0]])
    matrices = spearman(np.concatenate([similarities[name] for name in names]), counts)
    apart = ~np.eye(prompts, dtype=bool)
    at = {name: slice(k * prompts, (k + 1) * prompts) for k, name in enumerate(names)}
    found = {name: matrices[:, at[name], at[name]][:, apart].mean(axis=1) for name in names}
    if {"HS", "RW"} <= at.keys():
        found["HS-RW"] = matrices[:, at["HS"], at["RW"]].mean(axis=(1, 2))
    return found


def over_tasks(each: Sequence[Mapping[Key, Floats]]) -> dict[Key, Floats]:
    """The mean over tasks of every statistic, each task counting once, and what its standard error is made of.

    each: of each task (key) -> [1 + U], on the data, then without each unit. Returned: [1 + all units], the value, then
    parts whose root of the sum of squares is the standard error. Values and parts of two statistics may be subtracted.
    """
    return {key: np.concatenate([[np.mean([own[key][0] for own in each])], _parts(each, key)]) for key in each[0]}


def _parts(each: Sequence[Mapping[Key, Floats]], key: Key) -> Floats:
    without = [own[key][1:] for own in each]
    scaled = [np.sqrt((len(x) - 1) / len(x)) * (x - x.mean()) / len(each) for x in without]
    return np.concatenate(scaled)


def value(parts: Floats, floor: float = -np.inf) -> Value:
    """parts: of one statistic, as `over_tasks` gives them; floor: below which it cannot be."""
    reach = NORMAL * float(np.sqrt((parts[1:] ** 2).sum()))
    return Value(float(parts[0]), max(float(parts[0]) - reach, floor), float(parts[0]) + reach)


def difference(found: Mapping[Key, Floats], statistic: str, first: str = "RW", second: str = "HS") -> Value:
    """First minus second, on the same pairs."""
    return value(found[first, statistic] - found[second, statistic])


def correlation_matrix(similarities: Mapping[str, Floats]) -> Floats:
    """[K, K] Spearman correlations between all prompts of all readings, in order, on all pairs."""
    rows = np.concatenate(list(similarities.values()))
    return spearman(rows, np.ones((1, rows.shape[1])))[0]


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
