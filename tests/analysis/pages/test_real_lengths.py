"""The learning curves on real pairs: rows of the page are what the scores beside it give, p those of scipy.

Its sentences on pairs are claims of two lists, and the page has the verdicts that the program gives them.
"""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.claims import read_claims
from tests.analysis.pages.markdown import DOCS, TABLES, number, table_rows
from tests.started import start

SCORES = TABLES / "real_lengths.csv.gz"
LEADS, GAINS = (DOCS / "claims" / f"{name}.yaml" for name in ("real_data", "real_data_gains"))
NAMES = {
    "eos-causal": "Model 1",
    "lastlayer-causal": "Model 2",
    "multilayer-causal": "Model 3",
    "lastlayer-bi": "Model 4",
    "multilayer-bi": "Model 5",
    "mean-causal": "the causal mean",
    "mean-bi": "the bidirectional mean",
}


@pytest.fixture(scope="module")
def rows():
    """(design, steps) -> the cells from Banking77 on, of the rows that the stored scores are of."""
    text = (DOCS / "real-data.md").read_text(encoding="utf-8").partition("## Learning curves")[2]
    found, design = {}, ""
    for cells in table_rows(text.partition("![")[0]):
        if cells[1].isdigit():
            design = re.search(r"`(.+)`", cells[0])[1] if cells[0] else design
            found[design, int(cells[1])] = cells[3:]
    return found


@pytest.fixture(scope="module")
def means():
    scores = pd.read_csv(SCORES)
    assert (scores.groupby("model")["seed"].nunique() == 3).all()
    return scores.pivot_table(index="task", columns="model", values="score")


def test_scores_differences_and_p_over_tasks(rows, means):
    assert len(rows) == means.shape[1] == 7 * 4
    for steps in (60, 120, 240, 480):
        designs = [design for design, length in rows if length == steps and design != "eos-causal"]
        control = means[f"eos-causal {steps} steps"]
        apart = {design: means[f"{design} {steps} steps"] - control for design in designs}
        p = np.array([stats.wilcoxon(apart[design].round(12), method="exact").pvalue for design in designs])
        order = np.argsort(p)
        holm = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        for design, after in zip(np.array(designs)[order], holm, strict=True):
            cells = rows[design, steps]
            assert number(cells[0]) == pytest.approx(
                means.loc["Banking77Classification", f"{design} {steps} steps"], abs=6e-5
            )
            sts = means.loc[["SICK-R", "STSBenchmark"], f"{design} {steps} steps"].mean()
            assert number(cells[5]) == pytest.approx(sts, abs=6e-5)
            assert number(cells[7]) == pytest.approx(means[f"{design} {steps} steps"].mean(), abs=6e-5)
            assert number(cells[8]) == pytest.approx(apart[design].mean(), abs=6e-5)
            assert number(cells[9].split(";")[0]) == pytest.approx(after, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [60, 120, 240, 480])
def test_p_over_seeds_and_what_is_told(rows, tmp_path, steps):
    words = [f"models=[*{steps} steps]", f"against=eos-causal {steps} steps", "items=none", f"out={tmp_path}"]
    done = start("-m", "analysis", f"scores={SCORES}", *words)
    assert done.returncode == 0, done.stderr
    pairs = pd.read_csv(tmp_path / "pairs.csv")
    for row in pairs[pairs["type"] == "All"].to_dict("records"):
        (design,) = {row["first"], row["second"]} - {f"eos-causal {steps} steps"}
        cell = rows[design.removesuffix(f" {steps} steps"), steps][9]
        assert number(cell.split(";")[1].split(":")[0]) == pytest.approx(row["p_seeds_adjusted"], rel=0.06)
        assert cell.endswith(": told") == row["told"]


def test_the_lists_have_every_pair_once_and_name_it(rows):
    for path in (LEADS, GAINS):
        pairs = {}
        for claim in read_claims(path):
            assert (claim.kind, claim.type) == ("ahead", "")
            pairs[claim.claim] = (claim.ahead, claim.behind)
        named = {}
        for design, steps in rows:
            one, other = f"{design} {steps} steps", f"eos-causal {steps} steps"
            if path == GAINS and steps > 60:
                named[f"{NAMES[design]} gains from 60 to {steps} steps"] = (one, f"{design} 60 steps")
            elif path == LEADS and design == "multilayer-causal":
                named[f"Model 3 is behind Model 1 at {steps} steps"] = (other, one)
            elif path == LEADS and one != other:
                named[f"{NAMES[design]} is ahead of Model 1 at {steps} steps"] = (one, other)
        assert pairs == named
        assert len(read_claims(path)) == len(named) == {LEADS: 24, GAINS: 21}[path]


def of_claims(text):
    """Claim -> its other cells, of every row of a claim of these lists in Markdown."""
    rows = table_rows(text)
    return {claim: others for claim, *others in rows if re.search(r" Model 1 at \d+ | gains from 60 ", claim)}


@pytest.fixture(scope="module")
def shown():
    """Claim -> its cells in docs/tables/claims.md."""
    return of_claims((TABLES / "claims.md").read_text(encoding="utf-8"))


def judged(out, path, *words):
    """Claim -> the cells that the program prints, of those that have runs; claims.csv of the same."""
    done = start("-m", "analysis", f"scores={SCORES}", f"claims={path}", *words, f"out={out}")
    assert done.returncode == 0, done.stderr
    cells = {claim: row for claim, row in of_claims(done.stdout).items() if row[-1] != "no runs"}
    return cells, pd.read_csv(out / "claims.csv")


@pytest.mark.slow
@pytest.mark.parametrize("steps", [60, 120, 240, 480])
def test_the_table_of_a_length_is_printed_and_the_page_agrees(rows, shown, tmp_path, steps):
    cells, _ = judged(tmp_path, LEADS, f"models=[*{steps} steps]")
    assert len(cells) == 6
    assert cells == {claim: row for claim, row in shown.items() if claim.endswith(f"Model 1 at {steps} steps")}
    for claim in read_claims(LEADS):
        if claim.claim in cells:
            (design,) = {claim.ahead, claim.behind} - {f"eos-causal {steps} steps"}
            cell = rows[design.removesuffix(f" {steps} steps"), steps][9]
            assert cell.endswith(": told") == (cells[claim.claim][-1] == "**told**")


@pytest.mark.slow
@pytest.mark.parametrize("design", NAMES)
def test_the_table_of_a_design_is_printed(shown, tmp_path, design):
    cells, _ = judged(tmp_path, GAINS, f"models=[{design} *]")
    assert len(cells) == 3
    assert cells == {claim: row for claim, row in shown.items() if claim.startswith(f"{NAMES[design]} gains")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "least", "seeds"), [(LEADS, 0.1875, {"Model 2": 0.031, "the causal mean": 0.038}), (GAINS, 0.164, {})]
)
def test_over_all_pairs_together_nothing_is_told(tmp_path, path, least, seeds):
    _, table = judged(tmp_path, path)
    assert (table["verdict"] == "not told").all()
    assert table["p_min_adjusted"].to_numpy() == pytest.approx(least, rel=0.01)
    below = table[table["p_adjusted_seeds"] <= 0.05].sort_values("p_adjusted_seeds")
    assert below["p_adjusted_seeds"].tolist() == pytest.approx(list(seeds.values()), abs=5e-4)
    assert below["claim"].tolist() == [f"{name} is ahead of Model 1 at 60 steps" for name in seeds]


def test_what_prose_says_is_told_is_told(shown):
    """The bullets name the designs and lengths that are told, and no others."""
    text = " ".join((DOCS / "real-data.md").read_text(encoding="utf-8").split())
    told = {claim for claim, row in shown.items() if row[-1] == "**told**"}
    assert "**The causal mean is ahead of Model 1 at all four lengths: told.**" in text
    said = {f"the causal mean is ahead of Model 1 at {steps} steps" for steps in (60, 120, 240, 480)}
    for part in re.search(r"Told at (60, 120 and 240 steps: .*?)\.", text)[1].split(";"):
        names = [f"Model {number}" for number in re.findall(r"\b[2-5]\b", part)]
        names += ["the bidirectional mean"] if "bidirectional mean" in part else []
        for name in names:
            word = "behind" if f"{name} behind" in part else "ahead of"
            said |= {f"{name} is {word} Model 1 at {steps} steps" for steps in re.findall(r"\d{2,}", part)}
    for name, pattern in (
        ("Model 1", r"Model 1 gains with the length: told at (.*?) steps against 60"),
        ("Model 3", r"Model 3 is told to gain at (.*?) \("),
    ):
        lengths = re.findall(r"\d{2,}", re.search(pattern, text)[1])
        said |= {f"{name} gains from 60 to {steps} steps" for steps in lengths}
    assert "The other five are not told to change" in text
    assert said == told


@pytest.mark.slow
@pytest.mark.parametrize("design", ["eos-causal", "multilayer-causal"])
def test_the_last_rise_is_told_of_neither(tmp_path, design):
    words = f"models=[{design} 240 steps,{design} 480 steps]", "items=none", f"out={tmp_path}"
    done = start("-m", "analysis", f"scores={SCORES}", *words)
    assert done.returncode == 0, done.stderr
    (row,) = pd.read_csv(tmp_path / "pairs.csv").query("type == 'All'").to_dict("records")
    text = " ".join((DOCS / "real-data.md").read_text(encoding="utf-8").split())
    first, second = re.search(r"rise in these runs \((\+\.\d+), (\+\.\d+)\); neither is told", text).groups()
    assert not row["told"]
    assert number(first if design == "eos-causal" else second) == pytest.approx(abs(row["difference"]), abs=6e-5)
    p = re.search(rf"{NAMES[design]} (?:p )?(\.\d+)(?: over tasks)?, (\.\d+)(?: over tasks and seeds)?[;)]", text)
    assert [number(p[1]), number(p[2])] == pytest.approx([row["p"], row["p_seeds"]], rel=0.02)
