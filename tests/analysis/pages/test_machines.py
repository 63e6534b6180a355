"""The page on another machine: its tables are what the program makes of the scores of two that lie beside it."""

import pandas as pd
import pytest

from tests.analysis.pages.markdown import DOCS, TABLES, table_rows
from tests.started import start

PAGE = DOCS / "decisions" / "machines.md"
STORED = [TABLES / name for name in ("ten_seeds.csv.gz", "avx2.csv.gz")]


def by_design(text, head):
    """Design -> the other cells of the table under a head that begins so."""
    _, found, below = text.partition(f"\n| {head}")
    return {design: others for design, *others in table_rows((found + below).lstrip().split("\n\n")[0])[1:]}


@pytest.mark.slow
def test_spreads_and_verdicts_are_those_that_the_program_prints(tmp_path):
    words = [f"scores=[{','.join(map(str, STORED))}]", "seeds=[0,1,2]", f"out={tmp_path}"]
    printed = start("-m", "analysis.machines", *words, "against=eos-causal")
    assert printed.returncode == 0, printed.stderr
    page, spreads = PAGE.read_text(encoding="utf-8"), pd.read_csv(tmp_path / "machines.csv")
    shown = by_design(page, "design | SD over machines")
    for row in spreads.to_dict("records"):
        ratio = f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})".replace("0.", ".")
        sizes = [f"{row[f'sd_{over}']:.5f}".removeprefix("0") for over in ("machines", "seeds")]
        assert shown.pop(row["design"]) == [*sizes, ratio, row["word"]]
    assert not shown
    assert "The verdict is the same on both machines (6 pairs: told apart 0," in printed.stdout
    of_all = start("-m", "analysis.machines", *words)
    assert "The verdict changes with the machine for 1 of 21 pairs: mean-bi - mean-causal" in of_all.stdout


def test_means_are_those_of_the_scores():
    shown = by_design(PAGE.read_text(encoding="utf-8"), "design | AMD")
    for column, path in enumerate(STORED):
        scores = pd.read_csv(path)
        means = scores[scores["seed"] < 3].groupby("model")["score"].mean().to_dict()
        assert {design: float(cells[column]) for design, cells in shown.items()} == pytest.approx(means, abs=5.1e-5)
