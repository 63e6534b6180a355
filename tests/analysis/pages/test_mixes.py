"""Class data, losses, graded pairs and moved queries: every table of the page is what the program makes of its scores."""

import re

from analysis.analyse import analyse
from analysis.cli import read_arguments
from tests.analysis.pages.markdown import DOCS, TABLES, section, table_rows

PAGE = DOCS / "mixes.md"


def answers(name, factors, *words):
    """Answers of the analysis of stored scores by name, and its material."""
    path = TABLES / f"{name}.csv.gz"
    result = analyse(read_arguments([f"scores={path}", f"factors=[pooler,attn,{factors}]", "items=none", *words]))
    return {answer.name: answer for answer in result.answers}, result.material


def test_shares_of_class_data():
    found, _ = answers("mix_shares", "data.mix.classes")
    (grid,) = found["curves"].grids
    levels = zip(*(row[2:] for row in grid.rows), strict=True)  # of each, eight types of a design, then of the next
    printed = [[cell.text + cell.mark for cell in level] for level in levels]
    wanted = [level[start : start + 8] for start in (0, 8) for level in printed]
    _, *rows = table_rows(section(PAGE, "How much class data: `sweep=mix`"))
    assert [[cell.replace("\\", "") for cell in row[2:]] for row in rows] == wanted
    said = section(PAGE, "How much class data: `sweep=mix`")
    assert re.search(
        r"depend on data.mix.classes \(.+; p < .0001 over tasks, p = .0264 over", found["same_order"].grids[0].caption
    )
    assert "(p < .0001 over tasks, .026 over tasks and seeds)" in said
