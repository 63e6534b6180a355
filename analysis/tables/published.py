"""Published differences beside ours: is the sign the same, and could our tasks and seeds have found it?

The tables are analysis/published/*.csv. A design stands there by the name that ours has; scores are between -1 and 1.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.manifests.designs import UNTRAINED, names_of
from analysis.render import Section
from analysis.statistics.power import components, detectable, power
from analysis.statistics.seeds import FEWEST_SEEDS, spreads
from analysis.tables.compared_pairs import seed_cube
from analysis.tables.comparison import Comparison
from cli.errors import UserError, nearest

TABLES = Path(__file__).resolve().parent.parent / "published"


def section(compared: Comparison) -> Section | None:
    """Return the table; None without `published=`. Raises UserError for a table that is not there."""
    if not compared.settings.published:
        return None
    labels = {name: label for label, design in compared.designs.items() for name in names_of(label, design)}
    rows = published_rows(compared.settings.published).to_dict("records")
    table = pd.DataFrame([_beside(row, labels, compared) for row in rows])
    signed, where = compared.unit.signed, zip(table["base"], table["setting"], strict=True)
    found = table["significant"].map({"yes": "significant", "no": "no significant difference"}).fillna("-")
    shown = pd.DataFrame(
        {
            "Published on": [", ".join(filter(None, both)) for both in where],
            "Pair": compared.pair_texts(table),
            "Tasks": [f"{kind} ({n})" if n else f"{kind}: not ours" for kind, n in table[["type", "n_tasks"]].values],
            "Published": table["difference"].map(signed),
            "Its test": found,
            "Ours": table["ours"].map(signed),
            "Found in 80 %": table["detectable"].map(compared.unit.score),
            "Power": table["power"],
        }
    )
    caption = (
        f"Published differences ({'; '.join(dict.fromkeys(table['source']))}) beside ours, of another base, data and"
        " tasks: what can be compared is the sign. Found in 80 %, power: of our test over tasks and seeds at"
        f" {compared.settings.alpha:g}, for any and for the published difference."
    )
    made = compared.table("published", "Published numbers beside ours", caption, shown, left=3, digits=2)
    return Section("published", "Published numbers beside ours", [made], frames={"published": table})


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


def _beside(row: dict[str, Any], labels: dict[str, str], compared: Comparison) -> dict[str, Any]:
    """Return a published row with ours: tasks, mean over tasks and seeds, what these detect, and the power."""
    second, first = (labels.get(row[side], labels.get(row[side] + UNTRAINED, "")) for side in ("second", "first"))
    kind, nothing = row["type"] or compared.last, {"ours": math.nan, "detectable": math.nan, "power": math.nan}
    tasks = compared.blocks.get(kind, [])
    whole = {**row, "type": kind, "n_tasks": len(tasks), **nothing}
    if not (second and first and tasks):
        return whole | {"n_tasks": 0}
    matrix, alpha = compared.matrix.loc[tasks], compared.settings.alpha
    whole |= {"second": second, "first": first, "ours": float((matrix[second] - matrix[first]).mean())}
    of, places = (
        spreads(seed_cube(compared.frame, matrix)),
        [matrix.columns.get_indexer([n]) for n in (first, second)],
    )
    seeds = np.stack([of.counts[place] for place in places])
    if seeds.min() < FEWEST_SEEDS or len(tasks) < 2:
        return whole
    parts = components(of, *places)
    whole["detectable"] = float(detectable(parts, alpha, seeds)[0])
    return whole | {"power": float(power(parts, row["difference"], alpha, seeds)[0])}
