"""Names beyond Latin in LaTeX: a table compiles everywhere, and two names never print alike."""
# ruff: noqa: RUF001 (letters that look like Latin ones are what this is about)

import re
import shutil
import subprocess

import pytest

from analysis.grids.grid import Cell, Grid
from analysis.grids.latex import escape, latex_grid
from analysis.grids.latex_fit import KNOWN, MATHEMATICS, beyond_pdflatex, set_letter
from analysis.questions.letters import letter_notes

NAMES = ["多语言-bge", "модель", "łódź ść", "αλΩο ≤ ≥", "ą «x» ðþ", "e\u0301", "日本語_モデル & 1"]


def compiled(engine, folder, body):
    """Compile a document with booktabs alone; return the text of its pages, "" where pdftotext is missing."""
    text = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}\listoftables {body}\end{{document}}"
    (folder / "main.tex").write_text(text)
    for _ in range(2):  # captions come back from the .lot
        words = [engine, "-halt-on-error", "-interaction=nonstopmode", "main.tex"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    if shutil.which("pdftotext") is None:
        return ""
    return subprocess.run(["pdftotext", "main.pdf", "-"], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_what_becomes_of_a_letter():
    assert escape("é_ł") == r"é\_ł"
    assert escape("e\u0301") == "é", "composed, since pdflatex knows no accent of its own"
    assert escape("β ≤ 1") == r"$\beta$ $\leq$ 1"
    assert escape("Αο") == "Ao", "Greek letters that LaTeX takes from Latin"
    assert escape("语") == r"\beyond{语}{[8BED]}"
    assert beyond_pdflatex("a語é日βą") == ["ą", "日", "語"]
    assert set_letter("Ω") == r"$\Omega$"


def test_the_definition_comes_where_it_is_needed():
    plain, other = (latex_grid(Grid("x", f"Of {n}.", ["n"], [[Cell(n)]])) for n in ("a", "语"))
    assert "beyond" not in plain
    assert other.startswith(r"\providecommand\beyond[2]")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_pdflatex_prints_numbers_and_every_letter_taken_as_known(tmp_path):
    grid = Grid("x", f"Of {', '.join(NAMES)}.", ["Name", *NAMES[:2]], [[Cell(n), Cell("1"), Cell(n)] for n in NAMES])
    known = "\n\n".join(" ".join(map(set_letter, part)) for part in (sorted(KNOWN), sorted(MATHEMATICS)))
    text = compiled("pdflatex", tmp_path, f"{latex_grid(grid)}\n\n{known}")
    if text:
        assert "[591A][8BED][8A00]-bge" in re.sub(r"\s", "", text)


@pytest.mark.skipif(shutil.which("lualatex") is None, reason="no lualatex on this machine")
@pytest.mark.slow
def test_lualatex_prints_the_letters(tmp_path):
    text = compiled("lualatex", tmp_path, latex_grid(Grid("x", "Of ðþ.", ["Name", "n"], [[Cell("ðþ"), Cell("1")]])))
    assert "[F0]" not in text, "whether the letter is seen is up to the document's font"


def test_the_notes_say_it_once_and_only_where_it_is_so():
    assert letter_notes(["naïve", "α-β", "plain"], drawn=True) == []
    (note,) = letter_notes(["модель", "plain"], drawn=True)
    assert note.startswith("table.tex: pdflatex cannot set д, е, л, м, о, ь and prints their numbers in Unicode")
    both = letter_notes(["\U000f0000 日"], drawn=True)  # a private letter, which no font has
    assert "no font of this machine has" in both[1]
    assert "\U000f0000" in both[1]
    assert len(letter_notes(["\U000f0000 日"], drawn=False)) == 1
