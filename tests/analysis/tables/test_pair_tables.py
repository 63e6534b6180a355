"""The paper's layout and the table of details say what the pairs table holds."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.grids.formats import fraction
from analysis.grids.grid import Cell
from analysis.grids.markdown import markdown_grid
from analysis.questions import pairs
from analysis.questions.pair_texts import signed_rank_text
from analysis.questions.pairs import pair_grid, paper_grid, star_levels
from analysis.settings import Settings
from analysis.write import document, latex_document
from tests.analysis.three_seeds import write_long

ASKED = ("pairs", "pair_details", "seeds")

LIFT = {"a": 0.0, "b": 0.002, "c": 0.05, "d": 0.2}


@pytest.fixture(scope="module")
def csvs(tmp_path_factory):
    """Seeds -> four models on 14 STS tasks, 3 of pair classification and 4 of reranking; c and d are far ahead."""
    rng = np.random.default_rng(2)
    sizes = {"STS": 14, "PairClassification": 3, "Reranking": 4}
    types = {f"{kind}{k}": kind for kind, size in sizes.items() for k in range(size)}
    rows = []
    for _ in types:
        base = rng.uniform(0.3, 0.5)
        rows.append([round(base + v + rng.normal(0, 0.01), 4) for v in LIFT.values()])
    folder = tmp_path_factory.mktemp("scores")
    return {seeds: write_long(folder / f"{seeds}.csv", np.array(rows).T, LIFT, types, seeds) for seeds in (1, 2, 3)}


@pytest.fixture(scope="module")
def csv(csvs):
    return csvs[3]


@pytest.fixture(scope="module")
def result(csv, analyse_words):
    return analyse_words(f"scores={csv}", "layout=paper")


@pytest.fixture(scope="module")
def once(csvs, analyse_words):
    """The same of one run each."""
    return analyse_words(f"scores={csvs[1]}", "layout=paper")


def cells(result):
    """Return (pair, type) -> Cell of the paper's table."""
    grid = paper_grid(result.material)
    kinds = [name.partition(" (")[0] for name in grid.header[1:]]
    return {(row[0].text, kind): cell for row in grid.rows for kind, cell in zip(kinds, row[1:], strict=True)}


def test_stars_count_the_levels_that_the_corrected_p_passes(result):
    found = cells(result)
    for _, row in result.material.pairs[result.material.pairs["type"] == "STS"].iterrows():
        both = max(row["p_holm"], row["p_seeds_adjusted"])
        stars = sum(both <= level * (1 + 1e-9) for level in (0.05, 0.01, 0.001))
        assert row["told"] == (stars > 0)
        cell = found[f"{row['second']} - {row['first']}", "STS"]
        assert cell.mark == "*" * stars or (not stars and cell.mark in ("", "†"))
        assert cell.below == ()
    assert {cell.mark for cell in found.values()} >= {"***", " n.a."}
    said = " Stars: two-sided exact Wilcoxon signed-rank test"
    assert said in paper_grid(result.material).caption
    said = ". * p at most .05, ** p at most .01, *** p at most .001 after Holm, over tasks and over tasks and seeds"
    assert said in paper_grid(result.material).caption


def test_with_one_seed_no_cell_has_a_star_or_a_dagger(result, once):
    """p over tasks is the same and said; what cannot be reached is marked all the same."""
    for name in ("p", "p_holm", "significant", "reachable"):
        assert result.material.pairs[name].tolist() == once.material.pairs[name].tolist(), name
    assert once.material.pairs["significant"].any()
    found = cells(once)
    assert {cell.mark for cell in found.values()} == {"", " n.a."}
    caption = paper_grid(once.material).caption
    assert ". No star: it would be a claim about designs, which takes 3 seeds or more of each; p" in caption
    assert "†" not in caption
    grid = pair_grid(once.material)
    assert {cell.mark for row in grid.rows for cell in row} == {""}
    assert "No star: it would be a claim about designs" in grid.caption
    assert "(*)" not in grid.caption


def test_two_seeds_are_too_few(csvs, analyse_words):
    result = analyse_words(f"scores={csvs[2]}", "layout=paper")
    assert (result.material.pairs["n_seeds"] == 2).all()
    assert {cell.mark for cell in cells(result).values()} == {"", " n.a."}
    assert {cell.mark for row in pair_grid(result.material).rows for cell in row} == {""}
    assert "No claim about designs: that takes 3 seeds" in result.verdict


def test_a_star_takes_the_seeds_that_both_have(csvs, analyse_words, tmp_path):
    """d lacks the third seed: no mark of its pairs, and the others keep theirs."""
    frame = pd.read_csv(csvs[3])
    frame[(frame["model"] != "d") | (frame["seed"] < 2)].to_csv(tmp_path / "x.csv", index=False)
    result = analyse_words(f"scores={tmp_path / 'x.csv'}", "layout=paper")
    rows = result.material.pairs
    assert (rows["n_seeds"] == np.where(rows["second"] == "d", 2, 3)).all()
    assert rows.loc[(rows["second"] == "d") & (rows["type"] == "STS"), "significant"].all()
    found = cells(result)
    of_sts = {pair: cell.mark for (pair, kind), cell in found.items() if kind == "STS"}
    assert all(mark == "" for pair, mark in of_sts.items() if pair.startswith("d"))
    assert of_sts["c - a"].startswith("*")


@pytest.mark.parametrize("other", [3, 1])  # seeds 0-2 against 3-5, 1-3: none and two are shared
def test_three_runs_each_that_share_fewer_seeds_are_compared_unpaired(csvs, analyse_words, tmp_path, other):
    frame = pd.read_csv(csvs[3])
    frame.loc[frame["model"] == "d", "seed"] += other
    frame.to_csv(tmp_path / "x.csv", index=False)
    found = analyse_words(f"scores={tmp_path / 'x.csv'}", "types=[STS]")
    pairs = found.material.pairs
    assert (pairs["seeds_paired"] == (pairs["second"] != "d")).all()
    assert (pairs["n_seeds"] == 3).all()
    assert pairs.loc[pairs["second"] == "d", "told"].all()
    assert "told of these models: over tasks p" in found.verdict
    assert "over tasks and all runs, unpaired, 3 or more of each, p" in found.verdict
    (note,) = [note for note in found.notes if "unpaired" in note]
    assert "common to the two designs of d - a, d - b, d - c: over tasks" in note


def test_the_note_on_two_seeds_promises_no_star(csvs, analyse_words):
    notes = analyse_words(f"scores={csvs[2]}").notes
    (note,) = [note for note in notes if "2 seeds hardly say" in note]
    assert "on which a star rests" not in note


def test_the_usual_layout_says_p_over_seeds_and_the_marks(result):
    grid, place = pair_grid(result.material), {}
    for kind in ("STS", "PairClassification"):
        place[kind] = next(k for k, head in enumerate(grid.header) if head.startswith(f"{kind} ("))
    for cells_of, (_, row) in zip(grid.rows, result.material.pairs.query("type == 'STS'").iterrows(), strict=True):
        cell = cells_of[place["STS"]]
        assert cell.mark == ("*" if row["told"] else "(*)" if row["p"] <= 0.05 else "")
        assert cell.below == (fraction(row["p_adjusted"]), f"seeds {fraction(row['p_seeds_adjusted'])}")
        assert cells_of[place["PairClassification"]].mark == ""
    assert "* = told of the designs: p at most .05 after Holm, over tasks, and of the mean over tasks" in grid.caption
    assert "(*) = of these runs alone, or only before the correction" in grid.caption


def test_types_that_cannot_reach_alpha_are_marked_in_every_row(result):
    """With n = 3 and n = 4 the smallest p is .25 and .125."""
    found = cells(result)
    for kind, least in (("PairClassification", 0.25), ("Reranking", 0.125)):
        assert all(cell.mark == " n.a." for (_, own), cell in found.items() if own == kind)
        assert set(result.material.pairs.loc[result.material.pairs["type"] == kind, "p_min"]) == {least}
    assert "n.a. so few tasks that .05 cannot be reached" in paper_grid(result.material).caption


@pytest.mark.parametrize("more", [0, 0.01])  # more of b, for which its mean comes before that of a, too
def test_a_dagger_is_for_what_passes_only_before_the_correction(csv, analyse_words, tmp_path, more):
    scores = pd.read_csv(csv)
    scores.loc[scores["model"] == "b", "score"] += more
    csv = tmp_path / "more.csv"
    scores.to_csv(csv, index=False)
    result = analyse_words(f"scores={csv}", "layout=paper")
    p = float(result.material.pairs.loc[result.material.pairs["type"] == "STS", "p"].max())  # of a with b
    result = analyse_words(f"scores={csv}", "layout=paper", f"alpha={p}", "family=table")
    row = result.material.pairs[(result.material.pairs["type"] == "STS")].iloc[0]
    assert row["p"] <= p < row["p_holm"]
    assert cells(result)["b - a", "STS"] == Cell(cells(result)["b - a", "STS"].text, mark="†")
    said = f"† at most {fraction(p)} over tasks alone, or only before it"
    assert said in paper_grid(result.material).caption
    plain = analyse_words(f"scores={csv}", "layout=paper", f"alpha={p}", "correction=none")
    row = plain.material.pairs[(plain.material.pairs["type"] == "STS")].iloc[0]
    assert (row["p"], row["p_seeds"] <= p) == (p, True)
    assert row["ahead"] == 1
    assert (row["mean_seeds"] > 0) == (more > 0), "of one sign with the test, or not"
    assert cells(plain)["b - a", "STS"].mark == ("*" if more else "†")
    assert re.search(rf"† at most {re.escape(fraction(p))} over tasks alone[.;]", paper_grid(plain.material).caption)
    assert "only before it" not in paper_grid(plain.material).caption


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


def test_latex_sets_stars_daggers_and_marks_upright(result, once):
    text = latex_document(result)
    assert "$^{***}$" in text
    assert "n.a. in every row: " in text
    assert r"\dag{} at most .05 over tasks alone, or only before it" in text
    assert "†" not in text
    alone = latex_document(once)
    assert "n.a. in every row: " in alone
    assert not re.search(r"\^\{\*|\\dag|†", alone)


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
    assert any(
        note.startswith("PairClassification, Reranking: so few tasks with a difference attain no")
        for note in both.notes
    )
    few = analyse_words(f"scores={csv}", "types=[Reranking]")
    (grid,) = details(few).grids
    assert "n.a. in every row: HL (95 % CI)." in grid.caption
    assert not any(row[2].below for row in grid.rows)
    assert all(len(row[1].below) == 2 for row in grid.rows)  # Student's needs two tasks
    assert "n.a.: so few tasks attain it with no finite interval" in grid.caption
    ninety = analyse_words(f"scores={csv}", "types=[Reranking]", "alpha=0.2")  # four tasks attain 87.5 %
    assert details(ninety).grids[0].rows[0][2].below[0] != "n.a."
    assert "80 % CI" in details(ninety).grids[0].header[2]


def test_long_details_are_cut_and_what_is_not_resampled_is_said(csv, analyse_words, monkeypatch):
    monkeypatch.setattr("analysis.statistics.cross_checks.RESAMPLED_PAIRS", 5)
    monkeypatch.setattr("analysis.questions.pair_details.RESAMPLED_PAIRS", 5)
    result = analyse_words(f"scores={csv}", "rows_shown=2")
    (grid,) = details(result).grids
    assert len(grid.rows) == 2
    assert grid.rest == "The first 2 of 6 pairs, those of the highest means; pairs.csv has all, on every type."
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
