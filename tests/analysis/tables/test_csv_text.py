"""The quick csv writer says what pandas says."""

from io import StringIO

import numpy as np
import pandas as pd

from analysis.grids.csv import csv_text

TABLE = pd.DataFrame(
    {
        "name": ["a", 'say "b"', "c, d", "", "two\nlines"],
        "p": [0.1 + 0.2, 1e-17, np.nan, np.inf, -0.0],
        "n": [1, 2, 3, 2, 1],
        "yes": [True, False, True, True, False],
        "mixed, odd": ["x", None, "x", np.nan, "y"],
        "whole": [1.0, 2.0, 1e22, 5e-324, 1 / 3],
    }
)


def test_it_equals_to_csv():
    assert csv_text(TABLE) == TABLE.to_csv(index=False)
    indexed = TABLE.rename_axis("row")
    assert csv_text(indexed, index=True) == indexed.to_csv()
    double = TABLE.set_index(["name", "n"])
    assert csv_text(double, index=True) == double.to_csv()


def test_blocks_of_rows_change_nothing(monkeypatch):
    zeros = pd.DataFrame({"x": [1.0, -0.0, 2.0, 0.0, 0.5]})
    whole = csv_text(TABLE), csv_text(zeros)
    monkeypatch.setattr("analysis.grids.csv.ROWS_AT_ONCE", 2)
    assert (csv_text(TABLE), csv_text(zeros)) == whole
    assert whole[1].split() == ["x", "1.0", "-0.0", "2.0", "-0.0", "0.5"]  # all zeros have the sign of the first


def test_every_float_comes_back():
    values = pd.DataFrame({"x": np.random.default_rng(0).normal(size=2000) ** 9})
    back = pd.read_csv(StringIO(csv_text(values)), float_precision="round_trip")
    np.testing.assert_array_equal(back["x"], values["x"])


def test_no_rows():
    assert csv_text(TABLE.iloc[:0]) == TABLE.iloc[:0].to_csv(index=False)
