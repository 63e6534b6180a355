"""Published differences beside ours: is the sign the same, and could our tasks and seeds have found it?

The tables are analysis/published/*.csv. A design stands there by the name that ours has; scores are between -1 and 1.
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.manifests.designs import UNTRAINED, names_of
from analysis.questions.compared_pairs import seed_cube
from analysis.questions.question import Answer, Material
from analysis.questions.tables import PAIR, Row, filled, pair_name
from analysis.statistics.power import components, detectable, power
from analysis.statistics.seeds import FEWEST_SEEDS, spreads
from cli.errors import UserError, nearest

PLACE = 37
TABLES = Path(__file__).resolve().parent.parent / "published"


def answer(material: Material) -> Answer | None:
    """Return the table; None without `published=`. Raises UserError for a table that is not there."""
    if not material.settings.published:
        return None
    labels = {name: label for label, design in material.designs.items() for name in names_of(label, design)}
    rows = published_rows(material.settings.published).to_dict("records")
    table = pd.DataFrame([_beside(row, labels, material) for row in rows])
    return Answer("published", grids=[_grid(table, material)], frames={"published": table})


def published_rows(names: tuple[str, ...]) -> pd.DataFrame:
    """Return the rows of the tables, `difference` filled in from the two scores where it is not stated."""
    known = sorted(path.stem for path in TABLES.glob("*.csv"))
    for name in names:
        if name not in known:
            raise UserError(f"published= names {name!r}, which is no table of ours. {nearest(name, known)}")
    texts = dict.fromkeys(("setting", "type", "significant"), str)
    read = [pd.read_csv(TABLES / f"{name}.csv", dtype=texts, keep_default_na=False) for name in names]
    table = pd.concat(read, ignore_index=True)
    for column in ("second_score", "first_score", "difference"):
        table[column] = pd.to_numeric(table[column])
    return table.assign(difference=table["difference"].fillna(table["second_score"] - table["first_score"]).round(4))


def _beside(row: Row, labels: dict[str, str], material: Material) -> Row:
    """Return a published row with ours: tasks, mean over tasks and seeds, what so many tasks detect, and the power."""
    second, first = (labels.get(row[side], labels.get(row[side] + UNTRAINED, "")) for side in ("second", "first"))
    kind, nothing = row["type"] or material.last, {"ours": math.nan, "detectable": math.nan, "power": math.nan}
    tasks = material.blocks.get(kind, [])
    whole = {**row, "type": kind, "n_tasks": len(tasks), **nothing}
    if not (second and first and tasks):
        return whole | {"n_tasks": 0}
    ours = (material.matrix.loc[tasks, second] - material.matrix.loc[tasks, first]).mean()
    whole |= {"second": second, "first": first, "ours": ours}
    cube = seed_cube(material.frame, material.matrix.loc[tasks])
    places = (material.matrix.columns.get_indexer([name]) for name in (first, second))
    (one, other), of, alpha = places, spreads(cube), material.settings.alpha
    seeds = np.stack([of.counts[one], of.counts[other]])
    if seeds.min() < FEWEST_SEEDS or len(tasks) < 2:
        return whole
    parts = components(of, one, other)
    whole["detectable"] = float(detectable(parts, alpha, seeds)[0])
    return whole | {"power": float(power(parts, row["difference"], alpha, seeds)[0])}


def _grid(table: pd.DataFrame, material: Material) -> Grid:
    settings = material.settings
    signed = settings.numbers.signed

    def number(value: float) -> str:
        return "-" if np.isnan(value) else signed(value)

    def cells(row: Row) -> list[Cell]:
        where = ", ".join(filter(None, [row["base"], row["setting"]]))
        tasks = f"{row['type']} (n = {row['n_tasks']})" if row["n_tasks"] else f"{row['type']}: not ours"
        found = {"yes": ("significant",), "no": ("not significant",)}.get(row["significant"], ())
        seen = "-" if math.isnan(row["power"]) else score(row["power"], 2)
        numbers = [Cell(number(row["ours"])), Cell(number(row["detectable"])), Cell(seen)]
        return [*map(Cell, (where, pair_name(row), tasks)), Cell(signed(row["difference"]), below=found), *numbers]

    header = ["Published on", PAIR, "Tasks", "Published", "Ours", "Detectable", "Power"]
    caption = (
        "Published differences beside ours, which are of another base, other data and other tasks: what can be compared"
        f" is the sign. Sources: {'; '.join(dict.fromkeys(table['source']))}. Below a published difference: what its"
        " authors' test found. Ours: mean over tasks and seeds. Detectable: the smallest difference that our test over"
        f" tasks and seeds finds at {settings.alpha:g} in 80 %; Power: its chance to find the"
        " published one. not ours: a design, or tasks of the type, are not among what is compared."
    )
    grid = Grid("published", caption, header, left=3, title="Published numbers beside ours")
    return filled(grid, table, cells, settings.rows_shown, "published differences; published.csv has all.")
