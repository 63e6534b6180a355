"""The page of ten seeds: its tables are what the program makes of the scores beside it, and its p those of scipy."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.analyse import analyse
from analysis.cli import read_arguments
from tests.analysis.pages.markdown import TABLES, section, table_rows
from tests.started import start

SCORES = TABLES / "ten_seeds.csv.gz"
ORDER = "models=[eos-causal,lastlayer-causal,lastlayer-bi,multilayer-causal,multilayer-bi,mean-causal,mean-bi]"


def of_page(title):
    return section(TABLES / "ten_seeds.md", title)


def pairs(text):
    """Pair -> its cells from the mean on, of every row of a pair in Markdown."""
    return {cells[0]: cells[-9:] for cells in table_rows(text) if re.search(r"(causal|bi) - ", cells[0])}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "title", "count"), [(["against=eos-causal"], "Pairs with Model 1", 6), ([], "All pairs", 21)]
)
def test_the_program_prints_the_tables_of_the_page(tmp_path, words, title, count):
    printed = start("-m", "analysis", f"scores={SCORES}", ORDER, *words, f"out={tmp_path / 'out'}")
    assert printed.returncode == 0, printed.stderr
    of_pairs = printed.stdout.partition("## Main effects")[0]
    assert len(pairs(of_pairs)) == count
    assert pairs(of_pairs) == pairs(of_page(title))


def lines(text):
    """The cells of every row of the tables in a text, heads included where they name a number."""
    return [row for row in table_rows(text) if any(cell[-1:].isdigit() for cell in row)]


@pytest.mark.slow
def test_the_page_has_what_chance_alone_tells():
    printed = start("-m", "analysis.aa", f"scores={SCORES}", ORDER)
    assert len(lines(printed.stdout)) == 8 * 5 + 1
    assert lines(printed.stdout) == lines(of_page("Runs of one design against each other"))


@pytest.mark.slow
def test_the_page_has_the_replayed_looks():
    printed = start("-m", "benchmarks.calibrate.looks_replayed", str(SCORES), "orders=200")
    of = {(first, second): (told, seeds) for first, second, _, told, _, seeds, _ in lines(printed.stdout)}
    assert len(of) == 42
    for pair, _, told, seeds, told_second, seeds_second, _ in lines(of_page("Seeds added until told, replayed")):
        one, other = pair.split(" - ")
        assert (of.pop((one, other)), of.pop((other, one))) == ((told, seeds), (told_second, seeds_second))
    assert not of


def test_p_over_tasks_are_those_of_scipy_after_holm():
    """Of the means over seeds, which is no code of ours but for the rounding to twelve decimals."""
    with gzip.open(SCORES, "rt", encoding="utf-8") as file:
        scores = pd.read_csv(file)
    assert scores.groupby("model")["seed"].nunique().tolist() == [10] * 7
    means = scores.pivot_table(index="task", columns="model", values="score")
    others = [name for name in means if name != "eos-causal"]
    p = np.array(
        [stats.wilcoxon((means[name] - means["eos-causal"]).round(12), method="exact").pvalue for name in others]
    )
    order = np.argsort(p)
    holm = np.empty(len(p))
    holm[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    for name, value in zip(others, holm, strict=True):
        shown = re.search(r"\((<?)(\.\d+)", pairs(of_page("Pairs with Model 1"))[f"{name} - eos-causal"][-1])
        assert value < float(shown[2]) if shown[1] else value == pytest.approx(float(shown[2]), rel=5e-3)


def test_the_first_screen_says_which_differences_from_the_control_are_told():
    none = "None of the 6 differences from eos-causal is told of these models; this one has p = .127 over tasks"
    two = "Of the 6 differences from eos-causal 2 are told of these models (ahead of it multilayer-bi; behind it"
    for words, said in ((["seeds=[0,1,2]"], none), ([], f"{two} multilayer-causal); this one is told: p = .00876")):
        settings = read_arguments([f"scores={SCORES}", "against=eos-causal", "items=none", *words])
        assert f", uncorrected). {said}" in analyse(settings).summary
