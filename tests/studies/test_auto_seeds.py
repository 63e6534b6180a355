"""`seeds=auto`: which runs each look asks for, when it stops, and what it writes."""

import json

import numpy as np
import pytest

import study
from cli.errors import UserError
from tests.analysis.conftest import TASKS, Study

AHEAD = {"eos-causal": 0.0, "mean-causal": 0.1, "lastlayer-causal": 0.006}  # on the mean task


@pytest.fixture
def scored(monkeypatch, tmp_path):
    """Give each job that scores its scores at once; return the jobs asked for so far, and how to give the command."""
    asked, place = [], Study(tmp_path / "embedded" / "scores")

    def run_jobs(jobs, *_):
        asked.append([job.name for job in jobs])
        for job in jobs:
            kind, design, _, seed = job.name.split()
            if kind == "score":
                rng = np.random.default_rng([len(design), int(seed)])
                of_tasks = np.random.default_rng(len(design)).normal(0.5 + AHEAD[design], 0.01, len(TASKS))
                values = of_tasks + rng.normal(0, 0.004) + rng.normal(0, 0.001, len(TASKS))
                place.run(design, dict(zip(TASKS, values.tolist(), strict=True)), int(seed), study="embedded")
        return {job.name: 0 for job in jobs}

    def command(*words):
        own = ["seeds=auto", f"designs=[{','.join(AHEAD)}]", "untrained=false", f"runs_dir={tmp_path}"]
        monkeypatch.setattr("sys.argv", ["study.py", *own, *words])
        study.main()
        return json.loads((place.root / "sequential.json").read_text())

    monkeypatch.setenv("TQDM_DISABLE", "1")  # as main sets it
    monkeypatch.setattr("studies.rounds.run_jobs", run_jobs)
    return asked, command


def test_a_design_that_is_told_gets_no_more_seeds(scored, capsys):
    asked, command = scored
    found = command("max_seeds=6")
    assert [len(jobs) for jobs in asked] == [18, 12]
    trained = [name for name in asked[1] if name.startswith("train")]
    assert trained == [f"train {design} seed {k}" for design in ("eos-causal", "lastlayer-causal") for k in (3, 4, 5)]
    assert found["outcomes"] == {"mean-causal": "told apart", "lastlayer-causal": "not told"}
    assert [(test["second"], test["seeds"]) for test in found["tests"]] == [
        ("mean-causal", 3), ("lastlayer-causal", 3), ("lastlayer-causal", 6),
    ]  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Looks at 3, 6 seeds of 3 designs: 18 jobs at least, 36 at most."
    looks = [line for line in lines if line.startswith("Look at")]
    assert looks[0].startswith("Look at 3 seeds, against eos-causal: told apart mean-causal (+.")
    assert looks[1].startswith("Look at 6 seeds, against eos-causal: not told lastlayer-causal (")
    again = command("max_seeds=6")
    assert again == found
    assert asked[2:] == asked[:2]
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("Look at")] == looks


def test_it_ends_when_all_are_decided_and_seeds_that_lie_there_change_nothing(scored, tmp_path):
    asked, command = scored
    found = command("designs=[eos-causal,mean-causal]")
    assert len(asked) == 1
    page = (tmp_path / "embedded" / "scores" / "sequential.md").read_text()
    assert "| mean-causal | " in page
    assert " told apart |" in page
    place = Study(tmp_path / "embedded" / "scores")
    for seed in (3, 4):
        place.run("mean-causal", dict.fromkeys(TASKS, 0.1), seed, study="embedded")
    assert command("designs=[eos-causal,mean-causal]") == found


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("max_seeds=2", "max_seeds=2 must be a whole number, at least 3"),
        ("designs=[eos-causal]", "designs= names eos-causal alone"),
        ("designs=[eos-by]", "There is no design 'eos-by'"),
        ("seeds=[0,1]", "max_seeds= is of seeds=auto alone"),
    ],
)
def test_what_is_wrong_is_said_first(scored, word, message):
    asked, command = scored
    with pytest.raises(UserError, match=message):
        command("max_seeds=4", word)
    assert not asked
