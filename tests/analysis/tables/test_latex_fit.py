"""No table of LaTeX runs off its page, however wide, long or long-named it is."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from analysis.grids.grid import Cell, Grid
from analysis.grids.latex import latex_grid
from analysis.grids.latex_fit import PAGE, SIZES, fit, width, wrapped

DOCUMENT = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}%s\\end{document}"


def grid(rows, columns, name="design", below=()):
    header = ["Pair (second - first)", *[f"Type{k} (n = 8)" for k in range(columns)]]
    cells = [[Cell(f"{name}-{k}"), *[Cell("+.0129", mark="*", below=below)] * columns] for k in range(rows)]
    return Grid("pairs", "Caption.", header, cells)


def heads(table):
    return [(name, "") for name in table.header]


def test_a_narrow_table_is_one_piece_in_the_larger_type():
    table = grid(5, 4)
    size, floats = fit(table, heads(table))
    assert size == SIZES[0]
    assert [[(piece.columns, piece.rows) for piece in pieces] for pieces in floats] == [
        [((0, 1, 2, 3, 4), tuple(range(5)))]
    ]


@pytest.mark.parametrize(("rows", "columns"), [(5, 30), (200, 3), (120, 25)])
def test_every_cell_is_printed_once_and_names_on_every_panel(rows, columns):
    table = grid(rows, columns, "a-rather-long-name-of-a-design", ("n.a.: p >= .0781", "raw .0312"))
    _, floats = fit(table, heads(table))
    pieces = [piece for pieces in floats for piece in pieces]
    assert all(piece.columns[0] == 0 for piece in pieces)
    printed = sorted((row, column) for piece in pieces for row in piece.rows for column in piece.columns[1:])
    assert printed == [(row, column) for row in range(rows) for column in range(1, columns + 1)]
    sizes = {len(piece.columns) for piece in pieces}
    assert max(sizes) - min(sizes) < max(sizes) / 2  # no column stands alone


def test_names_are_wrapped_at_the_minus_and_lose_no_letter():
    name = "some-organisation__a-model-with-a-long-name-v2 - another/model_whose_name_is_longer_than_a_column_of_a_page"
    lines = wrapped(name, SIZES[0])
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert sum(line.startswith("- another") for line in lines) == 1
    assert all(width(line, SIZES[0].points) <= SIZES[0].name_width for line in lines)
    assert wrapped("eos-causal", SIZES[0]) == ["eos-causal"]
    assert wrapped("x" * 300, SIZES[0])[0] == "x" * len(wrapped("x" * 300, SIZES[0])[0])


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
@pytest.mark.skipif(shutil.which("pdftoppm") is None, reason="no pdftoppm on this machine")
@pytest.mark.parametrize(("rows", "columns"), [(20, 4), (20, 9), (3, 40)])
def test_the_margins_of_the_printed_page_stay_white(tmp_path, rows, columns):
    from PIL import Image

    name = "Some-Organisation__A-Model-With-a-Long-Name_and_$%&#-v2.5-instruct - Other__" + 12 * "LongModelWMWM"
    text = latex_grid(grid(rows, columns, name, ("n.a.: p >= .0781 at n = 6", "raw .0312")))
    (tmp_path / "main.tex").write_text(DOCUMENT % text)
    words = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "main"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Float too large" not in done.stdout
    subprocess.run(["pdftoppm", "-r", "36", "-gray", "-png", "main.pdf", "page"], cwd=tmp_path, check=True)
    pages = sorted(tmp_path.glob("page*.png"))
    assert pages
    for page in pages:
        grey = np.asarray(Image.open(page).convert("L"))
        ink, (height, across) = np.argwhere(grey < 200), grey.shape
        (top, left), (bottom, right) = ink.min(axis=0), ink.max(axis=0)
        margin = 36 // 3  # a third of an inch
        assert left > margin
        assert right < across - margin
        assert top > margin
        assert bottom < height - margin


def test_a_table_in_parts_keeps_one_number_and_one_label():
    text = latex_grid(grid(200, 3))
    floats = text.count(r"\begin{table*}")
    assert floats > 1
    assert text.count(r"\label{tab:pairs}") == 1
    assert text.count(r"\addtocounter{table}{-1}") == floats - 1
    assert text.count("(continued)") == floats - 1
    assert len(re.findall(r"design-\d+ &", text)) == 200
    assert PAGE == 455.0
