"""Pages of many designs are what the scores stored beside them give: tables, told pairs, claims, and a grid."""

import re
from functools import cache
from typing import NamedTuple

import pandas as pd
import pytest

from analysis.analyse import analyse
from analysis.cli import read_arguments
from analysis.grids.markdown import markdown_grid
from analysis.questions.compared_pairs import ALL, compare_pairs
from analysis.settings import Settings
from tests.analysis.pages.markdown import DOCS, TABLES, number, section, table_rows


class Stored(NamedTuple):
    """A csv of docs/tables, and the sections that are made of it; "" where a page has none of that kind."""

    name: str
    page: str
    scores: str = ""
    told: str = ""  # ends with the number of pairs that were compared
    claims: tuple[str, str, str] | None = None  # a list of docs/claims, the page and the section where it is judged
    seeds: int = 3


DESIGNS, OWN, ONE = "Scores by task type", "Each design at its own rates", "Heads of one size"
ABLATIONS, CLAIMS = "ablations.md", "claims.md"
STORED = (
    Stored("designs", "designs.md", DESIGNS, "Told pairs of the 210", ("findings", CLAIMS, "Judged: trained designs")),
    Stored("factorial", "factorial.md", DESIGNS, "Told pairs of the 153", ("factorial", "factorial.md", "Claims")),
    Stored("ablations", ABLATIONS, "One key at a time", claims=("ablations", ABLATIONS, "One key at a time: claims")),
    Stored("matched", ABLATIONS, ONE, f"{ONE}: told pairs of the 15", ("matched", ABLATIONS, f"{ONE}: claims")),
    Stored("head_rates", ABLATIONS, "The head's rate", "The head's rate: told pairs of the 15"),
    Stored(
        "rates", ABLATIONS, f"{OWN}: scores", f"{OWN}: told pairs of the 45", ("rates", ABLATIONS, f"{OWN}: claims")
    ),
    Stored(
        "moe_designs",
        CLAIMS,
        "MoEE, trained",
        "MoEE, trained: told pairs of the 21",
        ("moee", CLAIMS, "MoEE, trained: claims"),
    ),
    Stored("moee_bases", CLAIMS, claims=("moee_bases", CLAIMS, "MoEE, three bases")),
    Stored("moee_readings", CLAIMS, claims=("moee_readings", CLAIMS, "MoEE"), seeds=1),
    Stored("untrained", CLAIMS, claims=("untrained", CLAIMS, "Without training")),
)


def of_each(kind):
    """Parametrise over the stored scores whose pages have a section of this kind."""
    having = [stored for stored in STORED if getattr(stored, kind)]
    return pytest.mark.parametrize("stored", having, ids=[stored.name for stored in having])


@cache
def scores(name):
    return pd.read_csv(TABLES / f"{name}.csv.gz", dtype={"seed": str}).rename(columns={"model": "design"})


@of_each("name")
def test_every_design_has_all_seeds_and_the_tasks_of_the_study(stored):
    tasks = set(pd.read_csv(TABLES / "ten_seeds.csv.gz")["task"])
    for _, rows in scores(stored.name).groupby("design"):
        assert sorted(rows["seed"].unique()) == ["0", "1", "2"][: stored.seeds]
        assert set(rows["task"]) == tasks
        assert len(rows) == stored.seeds * len(tasks)


@of_each("scores")
def test_scores_by_type(stored):
    head, *rows = table_rows(section(TABLES / stored.page, stored.scores))
    frame, of_type = scores(stored.name), [re.sub(r" \(n = 8\)", "", cell) for cell in head[1:-2]]
    assert sorted(row[0] for row in rows) == sorted(frame["design"].unique())
    for design, *cells in rows:
        of_design = frame[frame["design"] == design]
        means = of_design.groupby("type")["score"].mean()[of_type].tolist()
        means += [of_design["score"].mean(), sum(means) / len(means)]
        assert list(map(number, cells)) == pytest.approx(means, abs=5.1e-5)


@of_each("told")
def test_the_pairs_that_are_told(stored):
    text = section(TABLES / stored.page, stored.told)
    frame, (_, *rows) = scores(stored.name), table_rows(text)
    matrix = frame.pivot_table(index="task", columns="design", values="score")
    pairs = compare_pairs(matrix, {ALL: list(matrix.index)}, Settings(scores=()), frame=frame, sizes=False)
    assert len(pairs) == int(re.search(r"\d+$", stored.told)[0])
    told = {}
    for pair in pairs[pairs["told"]].to_dict("records"):
        ahead, behind = (pair["second"], pair["first"]) if pair["difference"] > 0 else (pair["first"], pair["second"])
        told[ahead, behind] = [abs(pair["difference"]), pair["p_holm"], pair["p_seeds_adjusted"]]
    assert {(row[0], row[1]) for row in rows} == told.keys()
    assert f"The {len(told)} pairs that are told" in text
    for ahead, behind, mean, _, *p in rows:
        assert number(mean) == pytest.approx(told[ahead, behind][0], abs=5.1e-5)
        for said, value in zip(p, told[ahead, behind][1:], strict=True):
            assert value < 0.0001 if said == "<.0001" else float(said) == pytest.approx(value, rel=0.006)


@of_each("claims")
def test_the_claims_are_judged_as_the_page_says(stored):
    claims, page, title = stored.claims
    words = [f"scores={TABLES / stored.name}.csv.gz", f"claims={DOCS / 'claims' / claims}.yaml"]
    (grid,) = [grid for grid in analyse(read_arguments([*words, "items=none"])).grids() if grid.name == "claims"]
    judged = table_rows(markdown_grid(grid))
    assert len(judged) > 1
    assert judged == table_rows(section(TABLES / page, title))


def test_the_grid_of_stages_without_training():
    (_, *stages), *rows = table_rows(section(TABLES / CLAIMS, "LLM2Vec's whole grid"))
    assert stages == ["no stage", "MNTP", "SimCSE", "MNTP + SimCSE"]
    lineages = ("", " lineage=mntp", " lineage=simcse", " lineage=mntp+simcse")
    means = scores("untrained").groupby("design")["score"].mean()
    assert len(rows) == 6
    for cell, *shown in rows:
        pooler, attention = cell.split(", ")
        of_stages = [means[f"{pooler}-{attention}{lineage} (untrained)"] for lineage in lineages]
        assert list(map(number, shown)) == pytest.approx(of_stages, abs=5.1e-5)
