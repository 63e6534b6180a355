"""The tables as they are printed: marks, the paper's layout, LaTeX that compiles, numbers, other names."""

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from analysis.grids.formats import Numbers, fraction
from analysis.grids.grid import Cell, Grid
from analysis.grids.latex import escape, latex_grid
from analysis.grids.markdown import markdown_grid
from analysis.questions.pairs import star_levels
from analysis.write import latex_document, write_files
from tests.analysis.three_seeds import write_long

ASKED = ("means", "pairs")
TYPES = {f"t{k:02}": "STS" if k < 12 else "Retrieval" for k in range(16)}


@pytest.fixture
def words(tmp_path):
    """Return a function: number of seeds -> words; b is far ahead of a on every task, c hardly ahead of b."""
    rng = np.random.default_rng(0)
    base = rng.uniform(0.3, 0.5, 16)
    values = [base, base + 0.1 + rng.uniform(0, 0.01, 16), base + 0.1 + rng.uniform(0, 0.012, 16)]
    return lambda seeds: f"scores={write_long(tmp_path / f'{seeds}.csv', np.array(values), 'abc', TYPES, seeds)}"


def pairs_grid(result):
    (grid,) = [grid for grid in result.grids(main=True) if grid.name == "pairs"]
    return grid


@pytest.mark.parametrize("seeds", [1, 3])
def test_marks_and_p_are_those_of_the_table_of_pairs(words, analyse_words, seeds):
    result = analyse_words(words(seeds))
    grid, pairs = pairs_grid(result), result.material.pairs
    for place, kind in enumerate(("Retrieval", "STS", "All")):
        rows = pairs[pairs["type"] == kind].to_dict("records")
        for row, cells in zip(rows, grid.rows, strict=True):
            cell = cells[1 + place]
            assert cell.text == Numbers().signed(row["mean_difference"])
            assert cell.mark == {"over tasks and seeds": "*", "over tasks only": "\N{DAGGER}"}.get(
                row["significant"], ""
            )
            both = (f"p {fraction(row['p_holm'])}",) if seeds == 3 else ()
            assert cell.below == (*both, f"tasks {fraction(row['p_wilcoxon_holm'])}")
    assert ("* = significant over tasks and seeds" in grid.caption) == (seeds == 3)


def test_stars_of_the_papers_layout_count_the_levels(words, analyse_words):
    result = analyse_words(words(3), "layout=paper")
    rows = result.material.pairs_on("All").to_dict("records")
    for row, cells in zip(rows, pairs_grid(result).rows, strict=True):
        stars = "*" * sum(row["p_holm"] <= level for level in (0.05, 0.01, 0.001))
        assert cells[-1].mark == (stars or ("\N{DAGGER}" if row["p_wilcoxon_holm"] <= 0.05 else ""))
        assert cells[-1].below == ()
    assert star_levels(0.01) == [0.01, 0.001]
    assert "***" in markdown_grid(pairs_grid(result)).replace("\\", "")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_latex_compiles(words, analyse_words, tmp_path):
    word, path = words(3), tmp_path / "3.csv"
    pd.read_csv(path).replace({"model": {"a": "x_1 & 50% #$~^{}"}}).to_csv(path, index=False)
    text = latex_document(analyse_words(word, "layout=paper"))
    packages = r"\usepackage{booktabs,graphicx}"
    body = rf"\documentclass{{article}}{packages}\begin{{document}}{text}\end{{document}}"
    (tmp_path / "main.tex").write_text(body)
    words = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "main"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


def test_latex_of_a_grid():
    grid = Grid(
        "g", "A & b, p >= .1.", ["Pair", "n"], [[Cell("b - a", notes="x"), Cell("-.5", "best", "*", below=(".01",))]]
    )
    lines = latex_grid(grid).splitlines()
    assert r"Pair & n \\" in lines
    assert r"b $-$ a$^{\mathrm{x}}$ & \textbf{$-$.5}$^{*}$ \\" in lines
    assert r" & \scriptsize (.01) \\" in lines
    assert r"A \& b, p $\geq$ .1." in latex_grid(grid)
    assert escape("a_b~\\^†") == r"a\_b\textasciitilde{}\textbackslash{}\textasciicircum{}\dag{}"


def test_percent_changes_texts_and_no_file_of_data(words, analyse_words, tmp_path):
    files = {}
    for name, more in (("plain", []), ("worded", ["unit=percent"])):
        result = analyse_words(words(3), *more)
        write_files(result, tmp_path / name)
        files[name] = {p.name: p.read_text() for p in (tmp_path / name).iterdir()}
    csvs = [name for name in files["plain"] if name.endswith(".csv")]
    assert {"pairs.csv", "scores.csv", "by_type.csv"} <= set(csvs)
    assert [name for name in csvs if files["plain"][name] != files["worded"][name]] == []
    assert "Scores and differences are times 100." in files["worded"]["table.md"]


def test_long_lists_are_cut_to_the_pairs_of_the_highest_means(words, analyse_words):
    grid = pairs_grid(analyse_words(words(1), "rows_shown=1"))
    assert [row[0].text for row in grid.rows] == ["c - b"]
    assert grid.rest == "The first 1 of 3 pairs, those of the highest means; pairs.csv has all."
