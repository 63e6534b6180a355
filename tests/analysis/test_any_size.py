"""What the analysis says of any number of tasks and rows: no row shown, over 500 tasks, 75,000 rows."""

import re

import numpy as np
import pandas as pd
import pytest

from analysis.write import document, latex_document
from tests.analysis.two_designs import write_pairs


def long_csv(path, shape, difference=0.001, sd=0.02, other_type="Retrieval"):
    """Write scores of shape [designs, seeds, tasks], of two types, long."""
    designs, seeds, tasks = shape
    rng = np.random.default_rng(0)
    ground = rng.uniform(0.3, 0.7, tasks)
    own = np.stack([difference * k + sd * rng.normal(size=tasks) for k in range(designs)])
    scores = ground + own[:, None] + 0.005 * rng.normal(size=(designs, seeds, tasks))
    design, seed, task = (place.ravel() for place in np.indices(scores.shape))
    names = np.array([f"t{k}" for k in range(tasks)])
    kinds = np.where(task % 3 == 0, "STS", other_type)
    columns = {"model": design, "task": names[task], "type": kinds, "seed": seed, "score": scores.ravel().round(6)}
    pd.DataFrame(columns).assign(model="m" + pd.Series(design).astype(str)).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("word", ["layout=grid", "layout=paper"])
def test_no_row_need_be_shown(tmp_path, analyse_words, word):
    result = analyse_words(f"scores={long_csv(tmp_path / 'x.csv', (3, 2, 12))}", "rows_shown=0", word)
    text = document(result)
    assert "The first 0 of 3 pairs, those of the highest means; pairs.csv has all." in text
    assert "STS (n = 4)" in text
    assert not re.search(r"m1 - m0 +\|", text)
    assert r"\toprule" in latex_document(result)


@pytest.mark.parametrize("tasks", [501, 1200])
def test_more_than_five_hundred_tasks(tmp_path, analyse_words, tasks):
    """All of one type: each further one would be simulated for nothing."""
    path = long_csv(tmp_path / "x.csv", (2, 1, tasks), difference=0.006, other_type="STS")
    (section,) = [s for s in analyse_words(f"scores={path}").answers if s.name == "power"]
    (row,) = section.frames["power"].to_dict("records")
    assert row["n_tasks"] == tasks
    sd = row["sd"]
    # Normal differences: the test is as good as that of the mean over sqrt(3/pi), and z .975 + z .8 = 2.80. The rest
    # is how far the pseudo-median of these tasks happens to lie from their mean.
    assert row["detectable"] == pytest.approx(2.80 * sd * np.sqrt(np.pi / 3 / tasks), rel=0.15)
    assert row["tasks_observed"] == pytest.approx(2.80**2 * (sd / row["difference"]) ** 2 * np.pi / 3, rel=0.3)


def posterior(result):
    """The table with the three probabilities, whatever its section is called."""
    frames = [frame for section in result.answers for frame in section.frames.values()]
    (found,) = [frame for frame in frames if {"worse", "equivalent", "better"} <= set(frame.columns)]
    return found


def test_more_tasks_make_equivalence_surer_not_less(tmp_path, analyse_words):
    """Two designs that do not differ, SD .02: the posterior gathers within the margin."""
    found = [
        posterior(analyse_words(f"scores={write_pairs(tmp_path / f'{n}.csv', n, 0.0)}"))["equivalent"].iloc[0]
        for n in (8, 60, 240)
    ]
    assert found == sorted(found)
    assert found[-1] > 0.99


@pytest.mark.slow
def test_thousands_of_tasks_with_seeds(tmp_path, analyse_words):
    """Three designs, five seeds, 5,000 tasks. How long many rows take: benchmarks/speed/analysis_size.py."""
    result = analyse_words(f"scores={long_csv(tmp_path / 'x.csv', (3, 5, 5_000))}")
    assert "two-sided Wilcoxon signed-rank test (more than 1,000 tasks: by the normal curve)" in document(result)
    assert np.isfinite(result.material.pairs[["hl_low", "hl_high", "p", "p_permutation"]]).all().all()
