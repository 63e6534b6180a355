"""Counts of a task's texts among the training texts: in the manifest beside the scores, and warned of."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpora.copies import place, write_texts
from evaluation.command import overlap_notes
from evaluation.results import written_record
from evaluation.scoring import Options, score, training_files
from evaluation.tasks.chosen import mteb_task
from evaluation.tasks.folder import folder_tasks

READ = {"sha256": "1" * 64, "triples": 3}
NAMES = ["Asked", "Graded", "Classes"]


@pytest.fixture
def tasks(folder: Path) -> list:
    return [mteb_task(d) for d in folder_tasks(folder, NAMES)]


@pytest.fixture
def run(candidate, tmp_path: Path) -> Any:
    """A run whose training texts hold two of the graded task's four texts, two of the corpus' 56, and others."""
    write_texts(
        place("1" * 64, tmp_path), ["Apple; PEAR plum lime!", "apple", "apple cherry fruit", "kiwi", "saw vice tools"]
    )
    made = candidate()
    return replace(made, manifest=made.manifest | {"data": READ})


def test_counts_stand_in_the_manifest_and_move_no_score(run, tasks, candidate, tmp_path: Path) -> None:
    plain = score(candidate(results=tmp_path / "plain"), tasks, Options())
    outcome = score(run, tasks, Options(overlap=tmp_path))
    counts = {"Asked": {"texts": 56, "exact": 2}, "Graded": {"texts": 4, "exact": 2}}
    assert {name: outcome.overlap[name] for name in counts} == counts
    assert written_record(outcome.folder)["overlap"] == outcome.overlap
    assert outcome.overlap.keys() == set(NAMES)
    assert not outcome.unmeasured
    assert outcome.scores == plain.scores
    assert "overlap" in written_record(plain.folder)
    assert not written_record(plain.folder)["overlap"]


def test_a_warning_names_tasks_above_the_share_and_what_was_not_counted(run, tasks, tmp_path: Path) -> None:
    outcome = score(run, tasks, Options(overlap=tmp_path))
    (note,) = overlap_notes([outcome], 0.1)
    assert note.startswith(f"Contamination: {run.title} was trained on more than 10.0% of the texts of 1 of 3")
    assert "Graded (50.0%)" in note
    assert list(overlap_notes([outcome], 0.6)) == []
    other = score(
        replace(run, manifest=run.manifest | {"data": {}}, results=tmp_path / "b"), tasks, Options(overlap=tmp_path)
    )
    assert other.overlap == {}
    (note,) = overlap_notes([other], 0.6)
    assert note.startswith("Contamination is not counted")
    assert run.title in note
    scored_before = score(run, tasks[:1], Options())
    assert scored_before.overlap.keys() == {"Asked"}  # in the manifest since the first scoring


def test_earlier_runs_count_and_a_run_before_training_has_read_theirs_alone(run, tmp_path: Path) -> None:
    write_texts(place("2" * 64, tmp_path), ["a text of the stage"])
    manifest = run.manifest | {"merged": [{"run": "s/mean-bi/seed0", "data": ["2" * 64]}]}
    staged = replace(run, manifest=manifest)
    assert training_files(staged, tmp_path) == ([place(digit * 64, tmp_path) for digit in "21"], "")
    assert training_files(replace(staged, folder=None), tmp_path) == ([place("2" * 64, tmp_path)], "")
    assert training_files(replace(run, folder=None), tmp_path) == ([], "")
