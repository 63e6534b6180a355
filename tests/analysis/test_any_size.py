"""What the analysis says of any number of tasks and rows: no row shown, 75,000 rows."""

import re

import numpy as np
import pandas as pd
import pytest

from analysis.write import document, latex_document


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


@pytest.mark.slow
def test_thousands_of_tasks_with_seeds(tmp_path, analyse_words):
    """Three designs, five seeds, 5,000 tasks."""
    result = analyse_words(f"scores={long_csv(tmp_path / 'x.csv', (3, 5, 5_000))}")
    assert "two-sided Wilcoxon signed-rank test (more than 1,000 tasks: by the normal curve)" in document(result)
    assert np.isfinite(result.material.pairs[["hl_low", "hl_high", "p", "p_permutation"]]).all().all()
