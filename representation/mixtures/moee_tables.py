"""MoEE's tables: readings as rows, task types as columns, a block for each encoder, template and attention."""

from collections.abc import Mapping

import pandas as pd

from analysis.figures.drawing import Drawing
from analysis.figures.style import house_style, mark
from analysis.formats import score
from analysis.tables.grid import Cell, Grid

BLOCK = ["encoder", "template", "attn"]
MEAN = "mean of types"
ABLATION = {  # of the paper's table 5, and the concatenation of layers, which keeps more than their mean
    "HS: last token, last layer": "moee:hidden",
    "HS: last token, mean of layers": "moee:hidden/last/mean",
    "HS: last token, all layers joined": "moee:hidden/last/all",
    "HS: mean of tokens, last layer": "moee:hidden/mean",
    "HS: mean of tokens, mean of layers": "moee:hidden/mean/mean",
    "HS: mean of tokens, all layers joined": "moee:hidden/mean/all",
    "RW: last token": "moee:routing",
    "RW: mean of tokens": "moee:routing/mean",
}


def main_readings(alpha: float) -> dict[str, str]:
    """Name -> reading of the paper's tables 3 and 4."""
    total = "moee:sum" if alpha == 1 else f"moee:sum@{alpha:f}"
    return {"HS": "moee:hidden", "RW": "moee:routing", "concat": "moee:concat", "sum": total}


def type_means(frame: pd.DataFrame) -> pd.DataFrame:
    """(block, reading) x type: the mean over seeds and tasks of a type, each task once, and their mean over types."""
    by_task = frame.groupby([*BLOCK, "reading", "type", "task"], observed=True, sort=False)["score"].mean()
    means = by_task.groupby(level=[*BLOCK, "reading", "type"], observed=True, sort=False).mean().unstack("type")
    means = means[sorted(means.columns, key=list(frame["type"].cat.categories).index)]
    means.columns = means.columns.astype(str)
    return means.assign(**{MEAN: means.mean(axis=1)})


def main_grid(frame: pd.DataFrame, alpha: float, over: str) -> Grid:
    """HS, RW, their concatenation and their sum."""
    caption = (
        f"Mean main score of mteb by task type; {over}. HS: hidden state of the last token after the last layer; RW: "
        f"routing weights of the last token in all layers; sum: cos(HS) + alpha cos(RW) as one vector, "
        f"alpha = {alpha:g}. Best of each block in bold."
    )
    return _grid("moee-main", "Readings, templates and attention", frame, main_readings(alpha), caption)


def ablation_grid(frame: pd.DataFrame, over: str) -> Grid:
    """Tokens x layers of HS, tokens of RW."""
    caption = (
        f"Mean main score of mteb by task type; {over}. Mean of tokens: over a text's own tokens and what closes it. "
        "Best of each block in bold."
    )
    return _grid("moee-ablation", "Tokens and layers", frame, ABLATION, caption)


def _grid(name: str, title: str, frame: pd.DataFrame, readings: Mapping[str, str], caption: str) -> Grid:
    means = type_means(frame)
    rows = []
    for block in dict.fromkeys(key[:-1] for key in means.index):
        own = means.loc[block].loc[list(readings.values())]
        best = own.max()
        for label, word in readings.items():
            cells = [Cell(score(v), style="best" if v == best[c] else "") for c, v in own.loc[word].items()]
            rows.append([*map(Cell, block), Cell(label), *cells])
    head = ["Encoder", "Template", "Attention", "Reading", *means.columns]
    return Grid(name, caption, head, rows, left=4, title=title)


@house_style()
def score_drawing(frame: pd.DataFrame, alpha: float, over: str) -> Drawing:
    """A panel for each template and attention: the score of each task type, a mark for each reading."""
    from matplotlib.figure import Figure

    means, readings = type_means(frame), main_readings(alpha)
    blocks = list(dict.fromkeys(key[:-1] for key in means.index))
    columns = min(2, len(blocks))
    rows = -(-len(blocks) // columns)
    figure = Figure(figsize=(1.2 + 3.0 * columns, 0.6 + 2.0 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes, block in zip(panels.ravel(), blocks, strict=False):
        for k, (label, word) in enumerate(readings.items()):
            look, values = mark(k), means.loc[(*block, word)]
            xs = [x + 0.12 * (k - 1.5) for x in range(len(values))]
            axes.plot(xs, values, look.shape, color=look.colour, markersize=4, label=label)
        axes.set_xticks(range(len(means.columns)), means.columns, rotation=30, ha="right")
        axes.set_title(", ".join(block))
        axes.grid(axis="y")
    for axes in panels.ravel()[len(blocks) :]:
        axes.set_visible(False)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper")
    caption = f"Mean main score of mteb by task type and reading, a panel for each template and attention; {over}."
    best = ", ".join(f"{', '.join(b)}: {_best(means, b, readings)}" for b in blocks)
    return Drawing("moee_main", "Readings of a mixture of experts", caption, f"Best mean of types: {best}.", figure)


def _best(means: pd.DataFrame, block: tuple[str, ...], readings: Mapping[str, str]) -> str:
    own = means.loc[block].loc[list(readings.values()), MEAN]
    return next(label for label, word in readings.items() if word == own.idxmax())
