"""Three bases of MoEE, as they are and standardised: the page's table and sentences are what the stored scores give."""

import re

import pandas as pd
import pytest

from analysis.analyse import analyse
from analysis.cli import read_arguments
from tests.analysis.pages.markdown import DOCS, TABLES, number, table_rows

SCORES, ENDING = TABLES / "moee_bases.csv.gz", " standardised"
READINGS = {"HS": "hidden state", "RW": "routing weights", "concat": "concat", "sum": "sum"}


@pytest.fixture(scope="module")
def claims():
    words = [f"scores={SCORES}", f"claims={DOCS / 'claims' / 'moee_bases.yaml'}", "items=none"]
    (answer,) = (answer for answer in analyse(read_arguments(words)).answers if answer.name == "claims")
    return answer.frames["claims"].set_index("claim")


@pytest.fixture(scope="module")
def page():
    return (DOCS / "moee.md").read_text(encoding="utf-8").partition("### Three bases")[2].partition("\n## ")[0]


def states(text, p):
    """Whether a text states this p: < .0001, or to its own digits."""
    return p < 1e-4 if text.startswith("<") else float(text) == pytest.approx(p, abs=6 * 10.0 ** -len(text))


@pytest.mark.parametrize("kind", ["", "STS"])
def test_the_means_of_every_base(page, kind):
    scores = pd.read_csv(SCORES, dtype={"seed": str})
    of = scores[scores["type"] == kind] if kind else scores
    means = of.pivot_table(index="model", columns="seed", values="score")
    rows = {cells[0]: cells for cells in table_rows(page)}
    for reading in READINGS:
        cells = rows[f"{kind}: {reading}" if kind else reading]
        for start, name in ((1, reading), (5, reading + ENDING)):
            wanted = [*means.loc[name], means.loc[name].mean()]
            assert list(map(number, cells[start : start + 4])) == pytest.approx(wanted, abs=5.1e-5)
        gain = means.loc[reading + ENDING].mean() - means.loc[reading].mean()
        assert number(cells[9].split(" ")[0]) == pytest.approx(gain, abs=5.1e-5)


def test_what_standardising_gains(page, claims):
    rows = {cells[0]: cells[9] for cells in table_rows(page)}
    for reading, name in READINGS.items():
        of_tasks, of_bases, told = re.fullmatch(r".* \((.+); (.+)\)(: told)?", rows[reading]).groups()
        claim = claims.loc[f"standardising gains, {name}"]
        assert states(of_tasks, claim["p_adjusted"])
        assert states(of_bases, claim["p_adjusted_seeds"])
        assert bool(told) == (claim["verdict"] == "told")


def test_what_the_page_says_of_other_pairs(page, claims):
    text = " ".join(page.split())
    first, second = (f"{name} standardised beats the hidden state as it is" for name in ("concat", "sum"))
    wanted = [claims.loc[name, column] for name in (first, second) for column in ("difference", "p_adjusted_seeds")]
    said = re.search(
        r"as it is\*\* \(([+.\d]+); < \.0001; ([.\d]+); and ([+.\d]+); < \.0001; ([.\d]+)\)", text
    ).groups()
    assert list(map(float, said)) == pytest.approx(wanted, abs=5.1e-4)
    assert (claims.loc[[first, second], "verdict"] == "told").all()
    behind = claims.loc[[f"the hidden state standardised beats {name} standardised" for name in ("concat", "sum")]]
    said = re.search(
        r"concat (-\.\d+) \(< \.0001; over bases ([.\d]+)\), the sum (-\.\d+) \(< \.0001; ([.\d]+)\)", text
    )
    for row, difference, p in zip(behind.to_dict("records"), said.groups()[::2], said.groups()[1::2], strict=True):
        assert -float(difference) == pytest.approx(row["difference"], abs=5.1e-5)
        assert states(p, row["p_adjusted_seeds"])
        assert row["verdict"] == "not told"
    means = pd.read_csv(SCORES).pivot_table(index="model", columns="seed", values="score")
    for name in ("concat", "sum"):
        assert (means.loc[name + ENDING] < means.loc["HS" + ENDING]).all(), "behind on every base"
