"""The measures of every encoder as tables."""

from math import isnan
from typing import TYPE_CHECKING

from analysis.formats import score
from analysis.tables.grid import Cell, Grid
from representation.texts import Texts

if TYPE_CHECKING:
    import pandas as pd

MEASURES = {
    "anisotropy": "Anisotropy",
    "uniformity": "Uniformity",
    "effective_rank": "Effective rank",
    "centred_effective_rank": "Effective rank, centred",
    "alignment": "Alignment",
}


def geometry_grids(table: "pd.DataFrame", texts: Texts) -> list[Grid]:
    """Return the table over all types, then the types one by one. table: see `representation.geometry.geometry`."""
    numbers = table.groupby("encoder", sort=False)[list(MEASURES)].mean()
    rows = [[Cell(str(label)), *(_number(name, own[name]) for name in MEASURES)] for label, own in numbers.iterrows()]
    caption = (
        f"Each measure of an encoder's vectors, mean over task types; {texts.over}; alignment over {len(texts.pairs)} "
        "pairs of a query and a document relevant to it."
    )
    whole = Grid("geometry-encoders", caption, ["Encoder", *MEASURES.values()], rows, title="Geometry of each encoder")
    return [whole, _by_type(table, texts)]


def _by_type(table: "pd.DataFrame", texts: Texts) -> Grid:
    own = [name for name in MEASURES if name != "alignment"]
    rows = []
    for _, group in table.groupby("encoder", sort=False):
        for k, (_, line) in enumerate(group.iterrows()):
            scored = "-" if isnan(line["score"]) else score(line["score"])
            first = Cell(line["encoder"] if k == 0 else "")
            rows.append([first, Cell(line["type"]), *(_number(name, line[name]) for name in own), Cell(scored)])
    caption = (
        f"The measures by task type, over {texts.over}, and the score on that type where there is one: mean over the "
        "tasks that all of them were scored on."
    )
    header = ["Encoder", "Task type", *(MEASURES[name] for name in own), "Score"]
    return Grid("geometry-types", caption, header, rows, left=2, title="Geometry by task type")


def types_of(table: "pd.DataFrame") -> list[str]:
    """The task types in the order of the table."""
    return list(dict.fromkeys(table["type"]))


def _number(name: str, value: float) -> Cell:
    if isnan(value):
        return Cell("-")
    return Cell(f"{value:.1f}" if name.endswith("rank") else score(value, 3))
