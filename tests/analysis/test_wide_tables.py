"""The tables of 21 designs, of the factorial and of rates of their own are what the scores stored beside them give."""

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from analysis.questions.compared_pairs import ALL, compare_pairs
from analysis.settings import Settings

TABLES = Path(__file__).resolve().parents[2] / "docs" / "tables"
AGAIN = "Seven of them again"
PAGES = {
    "designs": ("designs.md", "Scores by task type", "Told pairs of the 210"),
    "factorial": ("factorial.md", "Scores by task type", "Told pairs of the 153"),
    "rates": ("ablations.md", f"{AGAIN}, by the present rule: scores", f"{AGAIN}: told pairs of the 21"),
}
STORED = pytest.mark.parametrize("name", PAGES)


def section(page, title):
    """Return the rows below a heading, each a list of cells without marks, and the section's text."""
    text = (TABLES / page).read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line[:2] == "| " and "---" not in line]
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]
    return rows, text


@cache
def scores(name):
    return pd.read_csv(TABLES / f"{name}.csv.gz", dtype={"seed": str}).rename(columns={"model": "design"})


@STORED
def test_every_design_has_three_seeds_and_the_tasks_of_the_study(name):
    tasks = set(pd.read_csv(TABLES / "ten_seeds.csv.gz")["task"])
    for _, rows in scores(name).groupby("design"):
        assert sorted(rows["seed"].unique()) == ["0", "1", "2"]
        assert set(rows["task"]) == tasks
        assert len(rows) == 3 * len(tasks)


@STORED
def test_scores_by_type(name):
    page, title, _ = PAGES[name]
    (head, *rows), _ = section(page, title)
    frame, of_type = scores(name), [re.sub(r" \(n = 8\)", "", cell) for cell in head[1:-2]]
    assert sorted(row[0] for row in rows) == sorted(frame["design"].unique())
    for design, *cells in rows:
        of_design = frame[frame["design"] == design]
        means = of_design.groupby("type")["score"].mean()[of_type].tolist()
        means += [of_design["score"].mean(), sum(means) / len(means)]
        assert list(map(float, cells)) == pytest.approx(means, abs=5.1e-5)


@STORED
def test_the_pairs_that_are_told(name):
    page, _, title = PAGES[name]
    (_, *rows), text = section(page, title)
    frame = scores(name)
    matrix = frame.pivot_table(index="task", columns="design", values="score")
    pairs = compare_pairs(matrix, {ALL: list(matrix.index)}, Settings(scores=()), frame=frame, sizes=False)
    assert len(pairs) == int(re.search(r"\d+$", title)[0])
    told = {}
    for pair in pairs[pairs["told"]].to_dict("records"):
        ahead, behind = (pair["second"], pair["first"]) if pair["difference"] > 0 else (pair["first"], pair["second"])
        told[ahead, behind] = [abs(pair["difference"]), pair["p_holm"], pair["p_seeds_adjusted"]]
    assert {(row[0], row[1]) for row in rows} == told.keys()
    assert f"The {len(told)} pairs that are told" in text
    for ahead, behind, mean, _, *p in rows:
        assert float(mean) == pytest.approx(told[ahead, behind][0], abs=5.1e-5)
        for said, value in zip(p, told[ahead, behind][1:], strict=True):
            assert value < 0.0001 if said == "<.0001" else float(said) == pytest.approx(value, rel=0.006)
