"""The sections of all designs at once, from files to printed tables: small, tied, alone and many."""

import csv
import re

import numpy as np
import pytest

from analysis.grids.formats import fraction
from analysis.write import document, latex_document, write_files
from tests.analysis.three_seeds import write_long

ASKED = ("pairs", "ranks", "strengths", "equivalence")


def write_csv(path, values, types=None, names=None):
    """Long csv of [tasks, designs]."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "task", "type", "score"])
        for task, row in enumerate(values):
            for design, value in enumerate(row):
                name = names[design] if names else f"m{design}"
                writer.writerow([name, f"task{task}", types[task] if types else "STS", value])
    return path


def sections(result):
    return {section.name: section for section in result.answers}


def marks(found):
    """The marks in the tables of the ranks, those of `strengths` and of `equivalence`."""
    grids = [grid for name in ("ranks", "strengths", "equivalence") for grid in found[name].grids]
    return [cell.mark for grid in grids for row in grid.rows for cell in row if cell.mark]


def clear_scores():
    rng = np.random.default_rng(0)
    return np.round(0.5 + np.array([0, 0.001, -0.1, 0.1]) + rng.normal(0, 0.01, (18, 4)), 4)


@pytest.fixture
def clear(tmp_path):
    """Four designs on 12 tasks of one type and 6 of another: m0 and m1 are close, m2 far behind, m3 far ahead."""
    return write_csv(tmp_path / "clear.csv", clear_scores(), ["Retrieval"] * 12 + ["STS"] * 6)


@pytest.fixture
def clear_by_seed(tmp_path):
    """The same as means of three seeds."""
    types = {f"task{k:02}": "Retrieval" if k < 12 else "STS" for k in range(18)}
    return write_long(tmp_path / "by_seed.csv", clear_scores().T, ["m0", "m1", "m2", "m3"], types, 3)


def test_tables_and_files(clear, analyse_words, tmp_path):
    result = analyse_words(f"scores={clear}")
    found = sections(result)
    assert [grid.name for name in ("ranks", "strengths", "equivalence") for grid in found[name].grids] == [
        "friedman",
        "ranks",
        "strengths",
        "equivalence",
    ]
    tests, ranks, order, equivalence = (
        grid.rows for name in ("ranks", "strengths", "equivalence") for grid in found[name].grids
    )
    assert [row[0].text for row in tests] == ["Retrieval", "STS", "All"]
    assert all(float(row[4].text.replace("<", "")) <= 0.05 for row in tests)
    assert found["ranks"].frames["friedman"]["p_permutation"].max() <= 0.05
    assert not marks(found), "ranks of these runs say nothing of other seeds"
    assert "No star: ranks of these runs say nothing of other seeds." in found["ranks"].grids[0].caption
    assert [row[0].text for row in ranks][::3] == ["m3", "m2"]
    assert ranks[0][3].below == ("a",)
    assert [row[1].text for row in order][::3] == ["1", "4"]
    assert len(equivalence) == 6
    files = {path.name: path for path in write_files(result, tmp_path / "out")}
    rows = list(csv.DictReader(files["friedman.csv"].open()))
    assert [int(row["n_tasks"]) for row in rows] == [12, 6, 18]
    pairs = list(csv.DictReader(files["rank_pairs.csv"].open()))
    assert [(row["first"], row["second"]) for row in pairs] == list(
        zip(result.material.pairs["first"], result.material.pairs["second"], strict=True)
    )
    assert {"ranks.csv", "strengths.csv", "equivalence.csv"} <= set(files)
    assert any("Benavoli, Corani, Mangili 2016" in note for note in result.notes)


@pytest.mark.parametrize("scores", ["clear", "clear_by_seed"])
def test_p_is_of_differences_from_the_design_that_against_names(scores, request, analyse_words):
    """Printed, and without a star: also with three seeds ranks of these runs say nothing of other seeds."""
    result = analyse_words(f"scores={request.getfixturevalue(scores)}", "against=m2")
    found = sections(result)
    table = found["ranks"].frames["ranks"]
    assert set(table["control"]) == {"m2"}
    assert table.loc[table["p_holm"].isna(), "design"].unique().tolist() == ["m2"]
    said = "p: of the difference from the average rank of m2, z (Demsar 2006), Holm over 3 comparisons with it."
    assert said in document(result)
    (ranks,) = [grid for grid in found["ranks"].grids if grid.name == "ranks"]
    p = table[table["type"] == "All"].set_index("design")["p_holm"]
    shown = {row[0].text: row[3].below for row in ranks.rows}
    for design in ("m0", "m1", "m3"):
        assert shown[design][-1] == f"p {fraction(p[design])}"
    assert p["m3"] <= 0.05
    assert not any(text.startswith("p ") for text in shown["m2"])
    assert not marks(found)


def test_three_seeds_give_ranks_no_star_and_pairs_one(clear, clear_by_seed, analyse_words):
    for path, starred in ((clear, False), (clear_by_seed, True)):
        result = analyse_words(f"scores={path}")
        assert not marks(sections(result))
        (pairs,) = [grid for grid in result.grids(main=True) if grid.name == "pairs"]
        stars = {row[0].text: row[-1].mark for row in pairs.rows}
        assert stars["m3 - m2"] == ("*" if starred else "")
        assert any(stars.values()) == starred
        outcomes = set(sections(result)["equivalence"].frames["equivalence"]["outcome"])
        assert ("told apart" in outcomes) == starred


def test_without_against_no_design_is_a_control_because_it_stands_first(clear, analyse_words):
    result = analyse_words(f"scores={clear}")
    (ranks,) = [grid for grid in sections(result)["ranks"].grids if grid.name == "ranks"]
    assert all(cell.mark == "" for row in ranks.rows for cell in row)
    assert "*" not in ranks.caption
    assert "m0" not in ranks.caption
    assert all(row[3].below for row in ranks.rows), "Nemenyi's letters, which compare all pairs"
    assert not any("Holm's marks" in note for note in result.notes)


def test_two_designs_have_no_friedman(tmp_path, analyse_words):
    path = write_csv(tmp_path / "two.csv", np.random.default_rng(0).uniform(size=(6, 2)).round(3))
    result = analyse_words(f"scores={path}")
    assert sections(result)["ranks"].grids == []
    assert any("need three designs" in note for note in result.notes)
    assert [row[0].text for row in sections(result)["strengths"].grids[0].rows] in (["m0", "m1"], ["m1", "m0"])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("identical", np.tile(np.linspace(0.1, 0.9, 6)[:, None], (1, 4))),
        ("two identical", np.random.default_rng(1).uniform(size=(6, 4)).round(3)[:, [0, 1, 1, 2]]),
        ("two tasks", np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]])),
        ("two levels", np.random.default_rng(2).integers(0, 2, (7, 5)) / 4),
        ("all agree", np.tile([0.1, 0.2, 0.3, 0.4], (8, 1))),
    ],
)
def test_degenerate_scores_print_without_nan(name, values, tmp_path, analyse_words):
    result = analyse_words(f"scores={write_csv(tmp_path / 'x.csv', values)}")
    for text in (document(result), latex_document(result)):
        assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    found = sections(result)
    table = found["ranks"].frames["friedman"].iloc[0]
    if name == "identical":
        assert (table["p_permutation"], table["w"]) == (1, 0)
        assert {row[1].style for row in found["ranks"].grids[1].rows} == {""}
        rows = found["equivalence"].frames["equivalence"]
        assert (rows["equivalent"] == 1).all()
        assert (rows["p"] == 2.0**-6).all()
        assert set(rows["outcome"]) == {"not told"}  # six pairs over six tasks: 6 x 2^-6 after Holm
    if name == "two tasks":  # 1/6 is the smallest p, though F's is 0
        assert found["ranks"].grids[0].rows[0][4].below == ("n.a.: p >= .167",)
        assert any("critical difference is larger than any difference" in note for note in result.notes)
    if name == "all agree":
        assert (table["w"], table["f"]) == (1, np.inf)


def test_one_task_of_a_type_is_left_out_and_named(tmp_path, analyse_words):
    values = np.random.default_rng(3).uniform(size=(6, 3)).round(3)
    path = write_csv(tmp_path / "x.csv", values, ["STS"] * 5 + ["Summarization"])
    result = analyse_words(f"scores={path}")
    assert [row[0].text for row in sections(result)["ranks"].grids[0].rows] == ["STS", "All"]
    assert any("Summarization left out of the rank tables" in note for note in result.notes)
    assert sections(result)["equivalence"].frames["equivalence"]["type"].unique().tolist() == [
        "STS",
        "Summarization",
        "All",
    ]


def test_a_block_that_friedman_leaves_open_is_named(tmp_path, analyse_words):
    values = np.array([[1, 2, 3], [2, 3, 1], [3, 1, 2], *[[1, 2, 3]] * 6]) / 10
    path = write_csv(tmp_path / "x.csv", values, ["STS"] * 3 + ["Retrieval"] * 6)
    result = analyse_words(f"scores={path}")
    assert any("does not reject at .05 on STS:" in note for note in result.notes)


def test_many_designs_stay_short(tmp_path, analyse_words):
    values = np.random.default_rng(5).normal(0.5, 0.05, (12, 60)) + np.linspace(0, 0.3, 60)
    path = write_csv(tmp_path / "x.csv", values.round(4))
    result = analyse_words(f"scores={path}", "rows_shown=12")
    found = sections(result)
    for section in found.values():
        assert all(len(grid.rows) <= 12 for grid in section.grids)
    assert len(found["ranks"].frames["ranks"]) == 60
    assert "rank_pairs.csv" not in found["ranks"].frames
    assert found["ranks"].grids[1].rest == "The best 12 of 60 designs; ranks.csv has all."
    pairs = found["equivalence"].frames["equivalence"]
    assert len(pairs) == 1770
