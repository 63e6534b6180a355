"""A score far off is named with its task's median, kept in all tables, and the verdict is repeated without its task."""

import csv
import re

import numpy as np
import pytest

from analysis.write import write_files

ASKED = ("means", "odd_cells")
TASKS = 14


@pytest.fixture
def write(tmp_path):
    """Return a function: changes (model, task) -> score; six models in percent, a ahead of b by about half a point."""

    def make(changes):
        rng = np.random.default_rng(0)
        base = rng.uniform(40, 80, TASKS)
        lift = {"a": 2.0, "b": 1.5, "c": 0.5, "d": 0.0, "e": -0.5, "f": -1.0}
        path = tmp_path / "scores.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["model", "task", "type", "score"])
            for model, up in lift.items():
                for k in range(TASKS):
                    value = round(base[k] + up + rng.normal(0, 0.1), 2)
                    writer.writerow([model, f"task{k}", "STS", changes.get((model, f"task{k}"), value)])
        return path

    return make


def test_a_fraction_among_percents_is_named_and_the_verdict_repeated(write, analyse_words, tmp_path):
    result = analyse_words(f"scores={write({('a', 'task3'): 0.71})}", "models=[a,b,c]")
    (note,) = [note for note in result.notes if "far off" in note]
    assert note.startswith("1 score is far off")
    assert "a on task3 .0071 (the task's median ." in note
    median = float(re.search(r"median (\.\d+)", note)[1])
    others = [float(r["score"]) for r in csv.DictReader((tmp_path / "scores.csv").open()) if r["task"] == "task3"]
    assert median == pytest.approx(np.median(others) / 100, abs=6e-5), (
        "of all six models read, not of the three compared"
    )
    assert result.material.matrix.loc["task3", "a"] == pytest.approx(0.0071), "nothing is left out of the tables"
    first, second = result.verdict.split(" Without the 1 task that holds a score far off: ")
    assert first.startswith("Verdict: b has the highest mean over the 14 STS tasks")
    assert second.startswith("a has the highest mean over the 13 STS tasks")
    files = {path.name: path for path in write_files(result, tmp_path / "out")}
    (row,) = csv.DictReader(files["odd_cells.csv"].open())
    assert (row["design"], row["task"]) == ("a", "task3")


def test_nothing_is_said_where_nothing_is_odd_or_what_is_odd_is_not_compared(write, analyse_words):
    clean = analyse_words(f"scores={write({})}", "models=[a,b,c]")
    other = analyse_words(f"scores={write({('f', 'task3'): 0.71})}", "models=[a,b,c]")
    for result in (clean, other):
        assert not any("far off" in note for note in result.notes)
        assert "Without the" not in result.verdict
        assert not [section for section in result.answers if section.name == "odd_cells"]


def test_a_long_list_is_cut_in_the_note_and_whole_in_the_file(write, analyse_words):
    changes = {(model, f"task{k}"): 1.5 for k, model in enumerate("abcabcd")}
    result = analyse_words(f"scores={write(changes)}", "models=[a,b,c,d]")
    (note,) = [note for note in result.notes if "far off" in note]
    assert note.startswith("7 scores are far off")
    assert "; and 2 more." in note
    (section,) = [section for section in result.answers if section.name == "odd_cells"]
    frame = section.frames["odd_cells"]
    assert set(zip(frame["design"], frame["task"], strict=True)) == set(changes)
    assert "Without the 7 tasks that hold scores far off: " in result.verdict
