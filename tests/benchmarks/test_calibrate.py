"""Calibration: the simulated spreads are those of the runs, and the rates are those of the tests."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.calibrate import Spread, levels, normal, spread_of
from cli.errors import UserError

SEEDS = np.array([0.006, 0.006, 0.012, 0.003])
SPREAD = Spread(0.02, SEEDS, 0.01, np.tile(np.arange(4), 50), np.repeat(np.arange(50), 4), 0.3, 0.4)


def test_spreads_of_runs_are_found_again(tmp_path):
    scores = replace(SPREAD, of_types=0.0).drawn(np.random.default_rng(0), normal, 1, 60)[0]
    kinds = ("STS", "Reranking", "Retrieval", "Clustering")
    names = [f"Docs{chr(65 + k // 26)}{chr(97 + k % 26)}{kind}" for k in range(50) for kind in kinds]
    index = pd.MultiIndex.from_product([range(4), names, range(60)], names=["model", "task", "seed"])
    path = tmp_path / "scores.csv"
    frame = pd.Series(scores.ravel(), index=index, name="score").reset_index()
    frame.assign(type=frame["task"].str[-1]).to_csv(path, index=False)
    found = spread_of(path)
    assert (found.task, found.rest) == pytest.approx((0.02, 0.01), rel=0.1)
    assert (found.of_types, found.of_packages) == pytest.approx((0, 0.4), abs=0.1)
    np.testing.assert_allclose(found.seeds, SEEDS, rtol=0.3)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"scores\.csv cannot be read: .*columns model, seed, task, type and score"):
        spread_of(path)


def test_the_test_over_both_holds_its_level_and_that_over_tasks_does_not():
    rows = [row for row in levels(SPREAD, 100) if row["seeds"] == "3"]
    assert all(float(row["any"]) < 12 for row in rows)
    assert max(float(row["Wilcoxon any"]) for row in rows) > 30
