"""Names reach the reader of a rendered page as they were written; the judge is a CommonMark parser."""

import re
from html import unescape

import pytest

from analysis.grids.grid import Cell, Grid
from analysis.grids.markdown import escape, markdown_grid

markdown_it = pytest.importorskip("markdown_it")

NAMES = [
    "plain-name", "BAAI__bge_small", "_private_", "__init__", "a_ b_", "x*y*z", "**bold**", "a|b", "<script>",
    "<b>x</b>", "<!-- c -->", "p <.0001", "a < b", "`code`", "a``b", "~~gone~~", "~x~", "[a](http://b)", "[a][b]",
    "a&lt;b", "&amp;", "R&D", r"back\_slash", r"C:\dir", "\\", r"a\|b", "$x$", "5 * 3 * 2", "Ä_ö_", "名_前_",
    "_名前_", "(*)", "-_-_", "a_|_b",
]  # fmt: skip


def page(text):
    """HTML as GitHub makes it: CommonMark with tables and struck out text."""
    return markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)


def rendered(text):
    """The cells of the tables of a page, as a browser shows them."""
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", page(text), re.DOTALL)
    return [unescape(cell) if "<" not in cell else cell for cell in cells]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_a_cell_is_shown_as_it_is(name):
    grid = Grid(
        "x", f"Of {name}.", [name, "n"], [[Cell(f"{name} - {name}"), Cell("1", style="best")], [Cell(name), Cell("")]]
    )
    text = markdown_grid(grid)
    assert rendered(text)[:5] == [name, "n", f"{name} - {name}", "<strong>1</strong>", name]
    assert unescape(re.sub(r"^<p>|</p>\n$", "", page(f"of {escape(name)}"))) == f"of {name}"


def test_what_is_no_markup_stays_legible():
    for text in ("missing=drop_tasks", "p = .03, <.0001", "[+.0010, +.0210]", "R&D", "C:dir", "a-b - c-d"):
        assert escape(text) == text
    assert escape("two\nlines") == "two lines"
