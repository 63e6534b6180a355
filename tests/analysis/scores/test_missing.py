"""Holes in the table: what each policy keeps, what it says, and where it gives up."""

import pandas as pd
import pytest

from analysis.manifests.designs import Design, Run
from analysis.scores.missing import complete, policy_for
from cli.errors import UserError

TYPES = {"s1": "STS", "s2": "STS", "r1": "Retrieval", "r2": "Retrieval"}


def frame(**have):
    """A long table; have: design -> its tasks, or "design@seed" -> its tasks."""
    rows = [(*unit.partition("@")[::2], task) for unit, tasks in have.items() for task in tasks]
    table = pd.DataFrame(rows, columns=["design", "seed", "task"])
    return table.assign(type=table["task"].map(TYPES), score=0.5)


ALL = ["s1", "s2", "r1", "r2"]
HOLED = frame(a=ALL, b=["s1", "s2", "r1"], c=ALL, d=["s1", "r1", "r2"])


def test_without_holes_every_policy_keeps_everything():
    for policy in ("fail", "drop_tasks", "drop_models"):
        found = complete(frame(a=ALL, b=ALL), ["b", "a"], policy)
        assert (found.designs, found.tasks, found.notes) == (["b", "a"], ALL, [])


def test_drop_tasks_keeps_every_design():
    found = complete(HOLED, list("abcd"), "drop_tasks")
    assert (found.designs, found.tasks) == (list("abcd"), ["s1", "r1"])
    (note,) = found.notes
    assert "2 of 4 tasks were dropped because not every design has them (b lacks 1, d lacks 1)" in note
    assert note.endswith(": s2, r2. missing=drop_models would keep every task and 2 of 4 designs.")


def test_drop_models_keeps_every_task():
    found = complete(HOLED, ["d", "c", "b", "a"], "drop_models")
    assert (found.designs, found.tasks) == (["c", "a"], ALL)
    assert found.notes == [
        "missing=drop_models: 2 of 4 designs were dropped because they lack some of the 4 tasks (how many):"
        " b (1), d (1)."
    ]


def test_fail_names_the_holes_and_both_ways_out():
    with pytest.raises(UserError, match=r"b lacks r2; d lacks s2\. .*missing=drop_tasks.*missing=drop_models"):
        complete(HOLED, list("abcd"), "fail")


def test_one_seed_with_a_hole_drops_its_design_or_its_task():
    table = frame(a=ALL, c=ALL, **{"b@0": ALL, "b@1": ["s1", "s2", "r1"]})
    assert complete(table, list("abc"), "drop_models").designs == ["a", "c"]
    assert complete(table, list("abc"), "drop_tasks").tasks == ["s1", "s2", "r1"]
    with pytest.raises(UserError, match=r"b \(seed 1\) lacks r2\."):
        complete(table, list("abc"), "fail")


def test_a_type_that_vanishes_is_said():
    found = complete(frame(a=ALL, b=["s1", "s2"]), ["a", "b"], "drop_tasks")
    assert found.notes[-1] == "No task of Retrieval is left, so it is not compared."


def test_a_design_without_any_score_is_a_hole_too():
    table = frame(a=ALL, c=ALL)
    assert complete(table, ["a", "b", "c"], "drop_models").designs == ["a", "c"]
    with pytest.raises(UserError, match="share 0 of 4 tasks"):
        complete(table, ["a", "b", "c"], "drop_tasks")
    with pytest.raises(UserError, match="No score of x, y is left"):
        complete(table, ["x", "y"], "drop_tasks")


def test_too_little_left_proposes_the_other_policy_only_where_it_helps():
    with pytest.raises(UserError, match=r"3 designs share 1 of 4 .*; missing=drop_models keeps all 4 tasks and 2 des"):
        complete(frame(a=ALL, b=["s1"], c=ALL), list("abc"), "drop_tasks")
    with pytest.raises(UserError, match=r"2 designs share 1 of 4 .*or score more tasks\.$"):
        complete(frame(a=ALL, b=["s1"]), list("ab"), "drop_tasks")
    with pytest.raises(UserError, match=r"1 of the 2 designs have all 4 tasks.*, or missing=drop_tasks, which keeps 3"):
        complete(frame(a=ALL, b=ALL[:3]), list("ab"), "drop_models")
    with pytest.raises(UserError, match=r"0 of the 2 designs have all 4 tasks.*models= or tasks=\.$"):
        complete(frame(a=ALL[:2], b=ALL[2:]), list("ab"), "drop_models")
    with pytest.raises(UserError, match="Only one task is left: s1"):
        complete(frame(a=["s1"], b=["s1"]), list("ab"), "drop_tasks")


def test_auto_fails_for_our_own_runs_and_drops_tasks_of_published_scores(tmp_path):
    ours = Design("m", runs=(Run("0", tmp_path, {}),))
    assert policy_for("auto", [Design("x"), Design("y")]) == "drop_tasks"
    assert policy_for("auto", [Design("x"), ours]) == "fail"
    assert policy_for("drop_models", [ours]) == "drop_models"


def test_the_former_name_is_still_understood(read_words, tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("model,SciFact,STS12,STS13\na,.1,.2,.3\nb,.2,.3,.4\nc,.2,.3,\n")
    words = [read_words(f"scores={path}", *more).notes for more in ([], ["missing=intersection"])]
    assert words[0] == words[1]
    assert any(note.startswith("missing=drop_tasks: 1 of 3 tasks") for note in words[0])
    whole = read_words(f"scores={path}", "missing=drop_models")
    assert list(whole.material.designs) == ["a", "b"]
    assert set(whole.material.pairs["second"]) == {"b"}
    with pytest.raises(UserError, match="against=c lacks tasks and was dropped"):
        read_words(f"scores={path}", "missing=drop_models", "against=c")
