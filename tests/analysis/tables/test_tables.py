"""The tables as they are printed: marks, the published layout, units, footnotes, what is cut."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from analysis.formats import Unit, p_text
from analysis.write import write_files
from cli.errors import UserError
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


def pair_table(result):
    (table,) = [table for table in result.tables if table.name == "pairs"]
    return table


@pytest.mark.parametrize("seeds", [1, 3])
def test_marks_and_numbers_are_those_of_the_pairs_on_all_tasks(words, analyse_words, seeds):
    result = analyse_words(words(seeds))
    table, pairs = pair_table(result), result.compared.main_pairs
    signs = {"over tasks and seeds": "*", "over tasks only": "†", "no": ""}
    assert (pairs["significant"] != "no").sum() >= 2
    assert ("over tasks and seeds" in set(pairs["significant"])) == (seeds == 3)
    for row, shown in zip(pairs.to_dict("records"), table.frame.to_dict("records"), strict=True):
        assert shown["Pair"] == f"{row['second']} - {row['first']}"
        assert shown["Difference"] == Unit().signed(row["mean_difference"]) + signs[row["significant"]]
        assert shown["95 % interval"] == Unit().interval(row["low"], row["high"])
        assert shown["p Wilcoxon"] == row["p_wilcoxon"]
        assert shown.get("p over tasks and seeds") == (row["p"] if seeds == 3 else None)
    assert table.formats["p Wilcoxon"] is p_text


def test_the_published_layout_is_alone_and_that_of_scipy(words, analyse_words):
    result = analyse_words(words(3), "layout=wilcoxon")
    (table,), matrix = result.tables, result.compared.matrix
    for row in table.frame.to_dict("records"):
        second, first = row["Pair"].split(" - ")
        test = wilcoxon(matrix[second] - matrix[first], method="exact")
        assert (row["W"], row["p"]) == pytest.approx((test.statistic, test.pvalue))
        assert row["Difference"].count("*") == sum(test.pvalue <= level for level in (0.05, 0.01, 0.001))


def test_the_published_layout_refuses_what_it_does_not_show(words, analyse_words):
    with pytest.raises(UserError, match=r"layout=wilcoxon prints one table alone. Leave out tables="):
        analyse_words(words(3), "layout=wilcoxon", "tables=[items]")


def test_digits_change_texts_and_no_file_of_data(words, analyse_words, tmp_path):
    files = {}
    for name, more in (("plain", []), ("worded", ["digits=3"])):
        result = analyse_words(words(3), *more)
        write_files(result, tmp_path / name)
        files[name] = {p.name: p.read_text() for p in (tmp_path / name).iterdir()}
    csvs = [name for name in files["plain"] if name.endswith(".csv")]
    assert {"pairs.csv", "scores.csv", "means.csv"} <= set(csvs)
    assert [name for name in csvs if files["plain"][name] != files["worded"][name]] == []
    assert files["plain"]["table.md"] != files["worded"]["table.md"]
