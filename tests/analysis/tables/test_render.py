"""One table in every format: numbers, names that hold markup (judged by a CommonMark parser), LaTeX that compiles."""

import math
import re
from html import unescape

import pandas as pd
import pytest

from analysis.formats import Unit, count, p_text, typeset
from analysis.render import BEST, Table, escape_latex, escape_markdown, html, latex, markdown

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
    frame = pd.DataFrame({name: [f"{name} - {name}", name], "n": [1, 2]})
    table = Table("x", "X", f"Of {name}.", frame, emphasis={(0, "n"): BEST})
    assert rendered(markdown(table))[:5] == [name, "n", f"{name} - {name}", "<strong>1</strong>", name]
    assert unescape(re.sub(r"^<p>|</p>\n$", "", page(f"of {escape_markdown(name)}"))) == f"of {name}"
    shown = re.findall(r"<th scope=row[^>]*>(.*?)</th>", html(table))
    assert [unescape(text) for text in shown] == [typeset(f"{name} - {name}"), typeset(name)]


def test_numbers_have_the_units_of_the_field():
    percent, finer = Unit(), Unit(digits=2)
    assert [percent.score(0.4324), percent.signed(0.0068), percent.signed(-0.0001)] == ["43.2", "+0.7", "+0.0"]
    assert [finer.score(0.4324), finer.signed(-0.0068), finer.score(math.nan)] == ["43.24", "-0.68", "-"]
    assert percent.interval(-0.0021, 0.0161) == "[-0.2, +1.6]"
    assert percent.interval(-math.inf, math.inf) == "-"
    assert [percent.margin(0.01), percent.margin(0.005)] == ["1 point", "0.5 points"]
    found = [p_text(p) for p in (0.127, 0.05, 0.0077, 0.0009, 1.0, math.nan)]
    assert found == ["0.13", "0.050", "0.0077", "< 0.001", "1.0", "-"]
    assert [count(x) for x in (None, 999, 41_900_000)] == ["-", "999", "41.9 M"]


def test_latex_escapes_and_breaks_long_tables():
    assert r"{}[m] & 1" in latex(Table("g", "G", "", pd.DataFrame({"Design": ["[m]"], "n": [1]})))
    frame = pd.DataFrame({"Pair": ["b_1 - a & 5%"], "n": [-0.5], "p": ["< 0.001"]})
    text = latex(Table("g", "G", "A & b ± 1.", frame, emphasis={(0, "n"): BEST}, footnotes=("a: x_y",)))
    assert r"b\_1 $-$ a \& 5\% & \textbf{$-$0.500} & $<$ 0.001 \\" in text
    assert r"\caption{A \& b $\pm$ 1.}\label{tab:g}" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\resizebox") == text.count(r"a: x\_y") == 1
    assert escape_latex("a_b~\\^†") == r"a\_b\textasciitilde{}\textbackslash{}\textasciicircum{}\dag{}"
    long = latex(Table("g", "G", "Long.", pd.concat([frame] * 81)))
    assert [part.count("b\\_1") for part in long.split(r"\begin{table*}")[1:]] == [40, 40, 1]
    assert (long.count(r"\label"), long.count(r"\resizebox"), long.count(r"\end{table*}")) == (1, 3, 3)
