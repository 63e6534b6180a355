"""README's table and the published claims are what the program makes of the stored scores of three seeds."""

import pytest

from analysis.analyse import analyse
from analysis.cli import read_arguments
from analysis.grids.formats import fraction
from analysis.grids.markdown import markdown_grid
from tests.analysis.pages.markdown import DOCS, TABLES, number, section, table_rows

CONTROL = "eos-causal"


def result(*words):
    return analyse(read_arguments([f"scores={TABLES / 'ten_seeds.csv.gz'}", "seeds=[0,1,2]", "items=none", *words]))


def test_the_table_of_the_readme():
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    shown = {cells[0].split("`")[1]: cells[-5:] for cells in table_rows(text) if "`" in cells[0]}
    material = result(f"against={CONTROL}").material
    kinds = {kind: material.matrix.loc[tasks].mean() for kind, tasks in material.blocks.items()}
    pairs = material.pairs[material.pairs["type"] == material.last]
    p = {}
    for pair in pairs.to_dict("records"):
        (design,) = {pair["first"], pair["second"]} - {CONTROL}
        p[design] = [pair["p_adjusted"], pair["p_seeds_adjusted"]]
    assert shown.keys() == {CONTROL, *p}
    for design, (*means, over_tasks, over_seeds) in shown.items():
        of = [kinds[kind][design] for kind in (material.last, "Retrieval", "Summarization")]
        assert list(map(number, means)) == pytest.approx(of, abs=5.1e-5)
        wanted = [fraction(value) for value in p.get(design, ())] or ["", ""]
        for cell, value in zip((over_tasks, over_seeds), wanted, strict=True):
            assert cell == value or number(cell) == pytest.approx(float(value), abs=5.1e-4)


def test_the_published_claims():
    found = result(f"claims={DOCS / 'claims' / 'tang_yang.yaml'}").grids()
    (grid,) = [grid for grid in found if grid.name == "claims"]
    judged = table_rows(markdown_grid(grid))
    assert len(judged) == 1 + 16
    assert judged == table_rows(section(TABLES / "claims.md", "Judged: Tang and Yang's five designs"))
