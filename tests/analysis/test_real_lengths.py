"""The learning curves on real pairs: rows of the page are what the scores beside it give, p those of scipy."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.started import start

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCORES = DOCS / "tables" / "real_lengths.csv.gz"


def number(text):
    return float(text.strip("* ").replace("+", ""))


@pytest.fixture(scope="module")
def rows():
    """(design, steps) -> the cells from Banking77 on, of the rows that the stored scores are of."""
    text = (DOCS / "real-data.md").read_text(encoding="utf-8").partition("## Learning curves")[2]
    found, design = {}, ""
    for line in text.partition("![")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[1].isdigit():
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
