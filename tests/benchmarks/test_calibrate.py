"""Calibration: the simulated spreads are those asked for, and the tests hold their level where they are exact."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import calibrate
from benchmarks.calibrate import PARTS, drawn, main, of_seeds, of_tasks, spread_of
from cli.errors import UserError

SPREAD = (0.02, 0.006, 0.01)


@pytest.mark.parametrize("part", PARTS)
def test_parts_have_variance_one(part):
    values = PARTS[part](np.random.default_rng(0), (2, 40, 20_000))
    assert values.mean() == pytest.approx(0, abs=0.05)
    assert values.var() == pytest.approx(1, abs=0.2 if part == "heavy tails" else 0.02)


def test_spreads_of_runs_are_found_again(tmp_path):
    scores = drawn(PARTS["normal"], SPREAD, (8, 200, 60), np.random.default_rng(0))
    index = pd.MultiIndex.from_product([range(size) for size in scores.shape], names=["model", "task", "seed"])
    path = tmp_path / "scores.csv"
    pd.Series(scores.ravel(), index=index, name="score").reset_index().to_csv(path, index=False)
    task, seed, rest = spread_of(path)
    assert (task, rest) == pytest.approx((SPREAD[0], SPREAD[2]), rel=0.05)
    assert seed == pytest.approx(SPREAD[1], rel=0.25)  # of eight designs, one of which strays
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"scores\.csv is no csv with model, seed, task and score"):
        spread_of(path)


def test_the_signed_rank_test_holds_its_level(monkeypatch):
    monkeypatch.setattr(calibrate, "PARTS", {"normal": PARTS["normal"]})
    rows = {(row["parts"], row["tasks"]): row for row in of_tasks({}, 400)}
    assert rows["normal", 5]["signed-rank"] == 0  # 2 / 2^5 is above .05
    for tasks in (20, 60):
        row = rows["normal", tasks]
        assert row["signed-rank"] == pytest.approx(0.05, abs=0.012)
        assert row["Student holds 0"] == pytest.approx(0.95, abs=0.012)
        assert row["any of 10, Holm"] < 0.08


def test_seeds_that_move_all_tasks_are_seen_by_the_test_over_both(monkeypatch):
    """Over tasks alone a difference of these runs passes for one of designs; with seeds as random it does not."""
    monkeypatch.setattr(calibrate, "PARTS", {"normal": PARTS["normal"]})
    rows = {(row["tasks"], row["seeds"]): row for row in of_seeds({"loud": (0.02, 0.02, 0.01)}, 60)}
    assert rows[40, 3]["tasks alone"] > 0.3
    assert rows[40, 3]["star"] <= rows[40, 3]["star, own seeds"] < 0.15
    assert rows[40, 3]["holds 0"] > 0.85


def test_tables_are_printed(monkeypatch, capsys):
    monkeypatch.setattr(calibrate, "PARTS", {"normal": PARTS["normal"]})
    monkeypatch.setattr(calibrate, "SPREADS", [SPREAD])
    monkeypatch.setattr("sys.argv", ["calibrate", "sets=1", "tables=effects,interaction"])
    main()
    said = capsys.readouterr().out
    assert "effects: rejections of a main effect" in said
    assert said.count("\n| normal | 0.02, 0.006, 0.01 | ") == 2 * 3
    monkeypatch.setattr("sys.argv", ["calibrate", "tables=seed"])
    with pytest.raises(UserError, match="There is no table 'seed'"):
        main()
