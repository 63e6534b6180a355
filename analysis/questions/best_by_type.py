"""The best design on each type of task, and whether what was published of it holds.

docs/decisions/design-by-type.md says what "best" takes.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.drawings.style import MOST_DESIGNS
from analysis.grids.formats import fraction
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import BETWEEN, compare_pairs, corrected, pairs_among
from analysis.questions.design_by_type import Types, types_tested
from analysis.questions.pair_texts import unreachable_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import NO_CLAIM, Row, after_correction, claims, marked_cell
from analysis.settings import Settings
from analysis.statistics.correction import CORRECTIONS, Family, of_seeds, passes
from analysis.statistics.seeds import FEWEST_SEEDS

PLACE = 46
MOST_NAMED = 4  # designs that keep the highest from being told the best; best_by_type.csv has all
FIVE = {("eos", "causal"), *((head, attn) for head in ("lastlayer", "multilayer") for attn in ("causal", "bi"))}
# cell -> the types on which Tang and Yang (2024, arXiv 2409.02727) say that it is the best of their five
CLAIMED = {("multilayer", "bi"): ("STS", "Retrieval"), ("eos", "causal"): ("Classification", "Clustering")}


def answer(material: Material) -> Answer | None:
    """Return the table and the verdict on the published claim; None below two types of two tasks."""
    types = types_tested(material)
    if len(types) < 2:
        return None
    designs, sentence = material.highest(MOST_DESIGNS)
    correction = of_seeds(material.settings.correction)  # over types there is nothing to resample
    settings = replace(material.settings, family="table", correction=correction)
    matrix = material.matrix[designs]
    pairs = pairs_among(material.pairs, designs)
    if material.control:  # pairs without it were not compared
        pairs = compare_pairs(matrix, types, settings, frame=material.frame)
    best = best_by_type(pairs, matrix, types, settings)
    asked = zip(material.pairs["first"], material.pairs["second"], strict=True)
    return Answer(
        "best_by_type",
        grids=[_grid(best, settings, sentence.replace("are drawn", "are compared"))],
        frames={"best_by_type": best},
        notes=_claimed(material, pairs, types, settings),
        about=dict.fromkeys(asked, _told(best)),
    )


def best_by_type(pairs: pd.DataFrame, matrix: pd.DataFrame, types: Types, settings: Settings) -> pd.DataFrame:
    """Return one row per type: its design of the highest mean, and whether that is told ahead of all others.

    p and p_seeds are the largest over the others (1 where another is ahead), corrected over the types alone: who is
    best of all must beat each of the others, and choosing the highest costs nothing (Hung and Fithian 2019).
    `not_behind`: the designs that keep it from being told. pairs: all pairs of the columns of `matrix`, per type.
    """
    rows, others = [], []
    for kind, tasks in types.items():
        best = str(matrix.loc[tasks].mean().round(settings.decimals).idxmax())
        of_best = pairs[(pairs["type"] == kind) & ((pairs["first"] == best) | (pairs["second"] == best))]
        side = np.where(of_best["second"] == best, 1, -1)
        p = of_best["p"].where(of_best["ahead"] * side > 0, 1.0)
        p_seeds = of_best["p_seeds"].where((of_best["mean_seeds"] * side > 0) | of_best["p_seeds"].isna(), 1.0)
        sizes = {"n_tasks": len(tasks), "mean": matrix.loc[tasks, best].mean(), "n_seeds": of_best["n_seeds"].min()}
        least = {"p": p.max(), "p_min": of_best["p_min"].max(), "p_seeds": p_seeds.max(skipna=False)}
        rows.append({"type": kind, "design": best, **sizes, **least})
        names = np.where(side > 0, of_best["first"], of_best["second"])
        others.append(pd.DataFrame({"name": names, "p": p.to_numpy(), "p_seeds": p_seeds.to_numpy()}))
    table = corrected(pd.DataFrame(rows), settings)
    return table.assign(
        not_behind=[BETWEEN.join(_not_behind(table, k, each, settings)) for k, each in enumerate(others)]
    )


def _not_behind(table: pd.DataFrame, place: int, others: pd.DataFrame, settings: Settings) -> list[str]:
    """Return those whose own p, in place of their type's, does not pass after the correction over the types."""

    def told(column: str, value: float) -> bool:
        p = table[column].fillna(1.0).to_numpy(dtype=np.float64).copy()
        p[place] = value
        return np.isnan(value) or bool(
            passes(CORRECTIONS[settings.correction](p, Family(len(p)))[place], settings.alpha)
        )

    rows = others.to_dict("records")
    return [row["name"] for row in rows if not (told("p", row["p"]) and told("p_seeds", row["p_seeds"]))]


def _told(best: pd.DataFrame) -> str:
    """Return who is told best on which types, for the verdict."""
    told = best[best["told"]]
    if (best["n_seeds"] < FEWEST_SEEDS).all():
        return ""
    names = [f"{row['design']} on {row['type']}" for row in told.to_dict("records")]
    if (best["reachable"] != "yes").all():
        least = fraction(best["p_min_adjusted"].min())
        return f"None can be told the best of a type: so few tasks allow no p below {least} over the {len(best)} types."
    return f"Told the best of a type: {listed(names, 8) if names else f'none, on any of the {len(best)}'}."


def _claimed(material: Material, pairs: pd.DataFrame, types: Types, settings: Settings) -> list[str]:
    """Return the verdict on the published claim where its five designs are at hand, once each."""
    cells = [(design.pooler, design.attn) for design in material.designs.values()]
    names = {cell: label for label, cell in zip(material.designs, cells, strict=True) if cell in FIVE}
    if names.keys() != FIVE or sum(cell in FIVE for cell in cells) > len(FIVE) or len(material.designs) > MOST_DESIGNS:
        return []
    among = list(names.values())
    asked = {kind: types[kind] for of_cell in CLAIMED.values() for kind in of_cell if kind in types}
    if not asked:
        return []
    best = best_by_type(pairs_among(pairs, among), material.matrix[among], asked, settings).set_index("type")
    parts = [f"{names[cell]} on {kind}: {_held(best, names[cell], kind)}" for cell in CLAIMED for kind in CLAIMED[cell]]
    after = f",{after_correction(settings)} over the {len(asked)} types that it names" if len(asked) > 1 else ""
    return [f"Published as the best of the five designs by type (Tang and Yang 2024{after}): {'; '.join(parts)}."]


def _held(best: pd.DataFrame, name: str, kind: str) -> str:
    if kind not in best.index:
        return "not scored on two tasks or more"
    row = best.loc[kind]
    highest = "it has the highest mean" if row["design"] == name else f"the highest mean is {row['design']}'s"
    if row["design"] == name and row["not_behind"]:
        highest += f", and is not told ahead of {row['not_behind']}"
    if row["n_seeds"] < FEWEST_SEEDS:
        return f"no claim about designs ({highest})"
    return "told" if row["design"] == name and row["told"] else f"not told ({highest})"


def _grid(best: pd.DataFrame, settings: Settings, sentence: str) -> Grid:
    """One row per type: its highest design, p against the nearest of the others, and who is level with it."""

    def cells(row: Row) -> list[Cell]:
        rest = row["not_behind"].split(BETWEEN) if row["not_behind"] else []
        texts = [f"{row['type']} (n = {row['n_tasks']})", row["design"], settings.numbers.score(row["mean"])]
        p = marked_cell(fraction(row["p"]), row, settings)
        below = tuple(line for line in p.below if line != f"raw {p.text}")  # which the cell says already
        return [*map(Cell, texts), replace(p, below=below), Cell(listed(rest, MOST_NAMED) or "-")]

    closed = f" n.a.: {unreachable_text(best, settings)}." if (best["reachable"] != "yes").any() else ""
    star = "* = told the best of its type" if claims(best) else f"No star: {NO_CLAIM}"
    caption = (
        "The design of the highest mean on each type, and the largest p of its tests against each of the others; below"
        f" it that p{after_correction(settings)} over the {len(best)} types, then the same over tasks and seeds."
        f" {star}; not told behind: designs that keep it from being told.{closed} {sentence}"
    ).strip()
    header = ["Type", "Highest mean", "Mean", "p", "Not told behind"]
    return Grid(
        "best-by-type", caption, header, [cells(r) for r in best.to_dict("records")], left=2, title="Best by type"
    )
