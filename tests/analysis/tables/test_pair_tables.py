"""The paper's layout and the table of details say what the pairs table holds."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.grids.grid import Cell
from analysis.grids.markdown import markdown_grid
from analysis.questions import pairs
from analysis.questions.pair_texts import signed_rank_text
from analysis.questions.pairs import paper_grid, star_levels
from analysis.settings import Settings
from analysis.write import document, latex_document

LIFT = {"a": 0.0, "b": 0.002, "c": 0.05, "d": 0.2}


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    """Four models on 14 STS tasks, 3 of pair classification and 4 of reranking; c and d are far ahead."""
    rng = np.random.default_rng(2)
    lines = ["model,task,score,type"]
    sizes = {"STS": 14, "PairClassification": 3, "Reranking": 4}
    for kind, size in sizes.items():
        for k in range(size):
            base = rng.uniform(0.3, 0.5)
            lines += [f"{m},{kind}{k},{base + v + rng.normal(0, 0.01):.4f},{kind}" for m, v in LIFT.items()]
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def result(csv, analyse_words):
    return analyse_words(f"scores={csv}", "layout=paper")


def cells(result):
    """Return (pair, type) -> Cell of the paper's table."""
    grid = paper_grid(result.material)
    kinds = [name.partition(" (")[0] for name in grid.header[1:]]
    return {(row[0].text, kind): cell for row in grid.rows for kind, cell in zip(kinds, row[1:], strict=True)}


def test_stars_count_the_levels_that_the_corrected_p_passes(result):
    found = cells(result)
    for _, row in result.material.pairs[result.material.pairs["type"] == "STS"].iterrows():
        stars = sum(row["p_holm"] <= level * (1 + 1e-9) for level in (0.05, 0.01, 0.001))
        cell = found[f"{row['second']} - {row['first']}", "STS"]
        assert cell.mark == "*" * stars or (not stars and cell.mark in ("", "†"))
        assert cell.below == ()
    assert {cell.mark for cell in found.values()} >= {"***", " n.a."}


def test_types_that_cannot_reach_alpha_are_marked_in_every_row(result):
    """With n = 3 and n = 4 the smallest p is .25 and .125."""
    found = cells(result)
    for kind, least in (("PairClassification", 0.25), ("Reranking", 0.125)):
        assert all(cell.mark == " n.a." for (_, own), cell in found.items() if own == kind)
        assert set(result.material.pairs.loc[result.material.pairs["type"] == kind, "p_min"]) == {least}
    assert "n.a. so few tasks that .05 cannot be reached" in paper_grid(result.material).caption


def test_a_dagger_is_for_what_passes_only_before_the_correction(csv, result, analyse_words):
    p = float(result.material.pairs.loc[result.material.pairs["type"] == "STS", "p"].max())  # of a with b
    result = analyse_words(f"scores={csv}", "layout=paper", f"alpha={p}", "family=table")
    row = result.material.pairs[(result.material.pairs["type"] == "STS")].iloc[0]
    assert row["p"] <= p < row["p_holm"]
    assert cells(result)["b - a", "STS"] == Cell(cells(result)["b - a", "STS"].text, mark="†")
    plain = analyse_words(f"scores={csv}", "layout=paper", f"alpha={p}", "correction=none")
    assert cells(plain)["b - a", "STS"].mark == "*"
    assert "†" not in paper_grid(plain.material).caption


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [],
            ("two-sided exact Wilcoxon signed-rank", "zero dropped", "Holm correction over the pairs of one task type"),
        ),
        (["zeros=pratt", "correction=bh"], ("zero ranked, then dropped", "Benjamini-Hochberg correction over")),
        (
            ["zeros=zsplit", "family=table"],
            ("half of their ranks", "all pairs and task types of the table (family of 24)"),
        ),
        (["correction=none"], ("no correction for many tests",)),
    ],
)
def test_captions_name_test_zeros_correction_and_family(csv, analyse_words, words, said):
    result = analyse_words(f"scores={csv}", *words)
    for layout in ("grid", "paper"):
        settings = replace(result.material.settings, layout=layout)
        (caption,) = [grid.caption for grid in pairs.answer(replace(result.material, settings=settings)).grids]
        assert all(part in caption for part in said), caption


def test_stars_of_other_levels():
    assert star_levels(0.05) == [0.05, 0.01, 0.001]
    assert star_levels(0.01) == [0.01, 0.001]
    assert star_levels(0.1) == [0.1, 0.05, 0.01]


def test_more_tasks_than_the_exact_n_are_said():
    pairs = pd.DataFrame({"type": ["STS", "All"], "n_pairs": [9, 1001]})
    assert "(on All, more than 1,000 tasks: by the normal curve)" in signed_rank_text(pairs, Settings(scores=()))


def test_latex_sets_stars_daggers_and_marks_upright(result):
    text = latex_document(result)
    assert "$^{***}$" in text
    assert r"$^{ \mathrm{n.a.}}$" in text
    assert r"\dag{} at most .05 only before it" in text
    assert "†" not in text


def details(result):
    (section,) = [section for section in result.answers if section.name == "pair_details"]
    return section


def test_details_are_those_of_all_tasks_together(result):
    (grid,) = details(result).grids
    rows = result.material.pairs[result.material.pairs["type"] == "All"]
    assert [row[0].text for row in grid.rows] == [
        f"{b} - {a}" for a, b in zip(rows["first"], rows["second"], strict=True)
    ]
    text = markdown_grid(grid)
    for name in (
        "Student's t interval",
        "Hodges-Lehmann",
        "attained 95",
        "sign test",
        "paired t",
        "permutation test",
        "Holm, BH",
    ):
        assert name in text
    first, row = rows.iloc[0], grid.rows[0]
    assert (row[3].text, row[3].below) == (f"{first['w_plus']:g}", (f"{first['w_minus']:g}",))
    assert (row[4].text, row[4].below) == ("21", ("0",))
    assert "99,999 sign patterns, seed 0" in grid.caption


def test_details_say_where_no_interval_is_to_be_had(csv, analyse_words):
    both = analyse_words(f"scores={csv}", "types=[PairClassification,Reranking]")
    assert any(note.startswith("PairClassification, Reranking: so few tasks attain no") for note in both.notes)
    few = analyse_words(f"scores={csv}", "types=[Reranking]")
    (grid,) = details(few).grids
    assert all(row[2].below == ("n.a.",) for row in grid.rows)
    assert all(len(row[1].below) == 2 for row in grid.rows)  # Student's needs two tasks
    assert "n.a.: so few tasks attain it with no finite interval" in grid.caption
    ninety = analyse_words(f"scores={csv}", "types=[Reranking]", "alpha=0.2")  # four tasks attain 87.5 %
    assert details(ninety).grids[0].rows[0][2].below != ("n.a.",)
    assert "80 % CI" in details(ninety).grids[0].header[2]


def test_long_details_are_cut_and_what_is_not_resampled_is_said(csv, analyse_words, monkeypatch):
    monkeypatch.setattr("analysis.statistics.cross_checks.RESAMPLED_PAIRS", 5)
    monkeypatch.setattr("analysis.questions.pair_details.RESAMPLED_PAIRS", 5)
    result = analyse_words(f"scores={csv}", "rows_shown=2")
    (grid,) = details(result).grids
    assert len(grid.rows) == 2
    assert grid.rest == "The first 2 of 6 pairs; pairs.csv has all, on every type."
    assert any(note.startswith("With more than 5 pairs (here 6) the permutation") for note in result.notes)
    assert grid.rows[0][6].text == "-"
    assert re.search(r"\| +- \|", document(result))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_the_paper_layout_compiles_and_fits_the_page(result, tmp_path):
    (tmp_path / "table.tex").write_text(latex_document(result))
    (tmp_path / "main.tex").write_text(
        "\\documentclass{article}\\usepackage[margin=2cm]{geometry}\\usepackage{booktabs}"
        "\\begin{document}\\input{table}\\end{document}"
    )
    words = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "main.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
