"""The scores of layers as tables: the mean over task types layer by layer, and the best layer of each type."""

from typing import TYPE_CHECKING

from analysis.formats import score, signed
from analysis.tables.grid import Cell, Grid
from representation.layers.vectors import POOLINGS

if TYPE_CHECKING:
    import pandas as pd


def type_means(scores: "pd.DataFrame") -> "pd.DataFrame":
    """Return one row an (decoder, pooling, layer), one column a type: the mean over its tasks, then over seeds."""
    by_seed = scores.groupby(["decoder", "pooling", "layer", "type", "seed"], sort=False)["score"].mean()
    return by_seed.groupby(["decoder", "pooling", "layer", "type"], sort=False).mean().unstack("type")[_types(scores)]


def layer_grids(scores: "pd.DataFrame", over: str) -> list[Grid]:
    """over: words for the tasks, `5 tasks of benchmark docs_dev`."""
    means = type_means(scores)
    return [_by_layer(means, over), _best(means, over)]


def _by_layer(means: "pd.DataFrame", over: str) -> Grid:
    layers = sorted(means.index.get_level_values("layer").unique())
    rows = []
    for decoder, pooling in _pairs(means):
        own = means.loc[decoder, pooling].sort_index().mean(axis=1)
        order = own.sort_values(ascending=False, kind="stable").index
        style = {order[0]: "best", **({order[1]: "second"} if len(order) > 1 else {})}
        cells = [Cell(score(own[layer]), style.get(layer, "")) for layer in layers]
        rows.append([Cell(decoder), Cell(POOLINGS[pooling]), *cells])
    caption = (
        f"Mean over task types of the score of each layer, read without parameters, on {over}. "
        "The best and second best layer of each row are set off."
    )
    header = ["Decoder", "Reading", *(f"Layer {layer}" for layer in layers)]
    return Grid("layers-scores", caption, header, rows, left=2, title="Score of each layer")


def _best(means: "pd.DataFrame", over: str) -> Grid:
    rows = []
    for decoder, pooling in _pairs(means):
        own = means.loc[decoder, pooling].sort_index()
        cells = [Cell(f"{score(own[kind].max())} ({own[kind].idxmax()})") for kind in own.columns]
        last = [Cell(signed(own.iloc[-1].mean() - own.mean(axis=1).max()))]
        rows.append([Cell(decoder), Cell(POOLINGS[pooling]), *cells, *last])
    caption = (
        f"The highest score of any layer on each task type, and in brackets which layer has it, on {over}; "
        "last column: the last layer's mean over types minus that of the best layer. A maximum over layers is no fair "
        "score of a design, since it is chosen on the tasks that it is measured on."
    )
    header = ["Decoder", "Reading", *means.columns, "Last - best"]
    return Grid("layers-best", caption, header, rows, left=2, title="Best layer of each task type")


def _pairs(means: "pd.DataFrame") -> list[tuple[str, str]]:
    return list(dict.fromkeys((decoder, pooling) for decoder, pooling, _ in means.index))


def _types(scores: "pd.DataFrame") -> list[str]:
    from analysis.reading.task_types import sort_types

    return sort_types(set(scores["type"]))
