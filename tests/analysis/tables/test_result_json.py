"""result.json holds the result to the last bit; what JSON cannot hold is said."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis import result_json
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from analysis.result_json import result_json as as_json
from analysis.result_json import table
from tests.analysis.three_seeds import run_seeds

OF_SEEDS = ("mean_seeds", "error_seeds", "df_seeds", "error_moderated", "df_moderated", "p_seeds", "p_seeds_adjusted")


@pytest.fixture(scope="module", params=[1, 3], ids=["one seed", "three seeds"])
def result(request, new_study, spread_scores, analyse_words):
    study = new_study()
    for k, design in enumerate(("eos-causal", "eos-bi", "mean-causal", "mean-bi")):
        for trained in (True, False):
            scores = {t: s + 0.01 * k * (i % 3) + 0.1 * trained for i, (t, s) in enumerate(spread_scores(0.3).items())}
            run_seeds(study, design, scores, request.param, trained=trained)
    return analyse_words(f"scores={study.root}")


def raw(held, name):
    """The values of a column as they stand in the file."""
    return [row[held["columns"].index(name)] for row in held["data"]]


def test_every_table_comes_back_bit_for_bit(result):
    value = json.loads(as_json(result))
    assert value["result_version"] == 2
    assert set(value["tables"]) == {"scores", "by_type", "before_after", "pairs", "effects", "marginal_means"}
    held = value["tables"]["pairs"]
    back = pd.DataFrame(data=held["data"], columns=held["columns"])
    for row, column, sign in held["infinite"]:  # ends of intervals, where too few tasks differ
        back.loc[row, column] = float(sign)
    assert list(back.columns) == list(result.material.pairs.columns)
    for name, column in result.material.pairs.items():
        if name in OF_SEEDS:
            unknown = column.isna()  # with one seed; null in the file
            assert (unknown == (result.material.pairs["n_seeds"] < 3)).all()
            assert back[name][~unknown].tolist() == column[~unknown].tolist(), name
            assert [value is None for value in raw(held, name)] == unknown.tolist()
        else:
            assert back[name].tolist() == column.tolist(), name
    scores = pd.DataFrame(**value["tables"]["scores"])
    assert scores["score"].tolist() == result.material.whole_frame["score"].tolist()
    assert value["verdict"] == result.verdict
    assert value["notes"] == result.notes
    assert value["settings"]["alpha"] == 0.05
    assert value["designs"]["mean-bi"]["trainable_parameters"] == 590_000
    assert value["designs"]["mean-bi"]["factors"] == {"pooler": "mean", "attn": "bi"}
    assert (
        value["crossings"][0]["designs"]
        == next(a for a in result.answers if a.name == "effects").facts["crossings"][0]["designs"]
    )
    assert {"by-type", "pairs"} <= set(value["captions"])


def test_the_same_result_gives_the_same_text(result):
    assert as_json(result) == as_json(result)


def test_nan_and_infinity_are_null_and_nothing_is_lost():
    frame = pd.DataFrame({"type": ["a", "b", "c"], "F": [np.inf, np.nan, 1 / 3], "n": np.array([1, 2, 3])})
    held = table(frame)
    assert held["data"] == [["a", None, 1], ["b", None, 2], ["c", 1 / 3, 3]]
    assert held["infinite"] == [[0, "F", "inf"]]
    json.dumps(held, allow_nan=False)
    assert "infinite" not in table(frame[2:])
    assert table(pd.DataFrame({"x": [-math.inf]}))["infinite"] == [[0, "x", "-inf"]]


def test_sections_are_in_it_with_their_tables_and_captions(result):
    frame = pd.DataFrame({"type": ["All"], "p": [1 / 3]})
    grid = Grid("friedman", "Friedman's test.", ["Tasks", "p"], [[Cell("All"), Cell(".333")]], title="All designs")
    section = Answer("ranks", grids=[grid], frames={"friedman": frame}, notes=["A note."])
    value = json.loads(as_json(replace(result, answers=[section])))
    tables = {"friedman": {"columns": ["type", "p"], "data": [["All", 1 / 3]]}}
    assert value["sections"] == [{"name": "ranks", "tables": tables, "notes": ["A note."]}]
    assert value["captions"]["friedman"]["caption"] == "Friedman's test."


def test_a_large_table_stays_in_its_csv(monkeypatch, result):
    monkeypatch.setattr(result_json, "MOST_ROWS", 5)
    value = json.loads(as_json(result))
    assert value["tables"]["pairs"]["file"] == "pairs.csv"
    assert value["tables"]["pairs"]["rows"] == len(result.material.pairs)
    assert len(value["tables"]["by_type"]["data"]) == 4
