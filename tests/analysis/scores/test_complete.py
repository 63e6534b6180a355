"""Holes in the table: what each policy keeps, what it says, and where it gives up."""

import pandas as pd
import pytest

from analysis.manifests.designs import Design, Run
from analysis.scores.complete import complete, policy_for
from cli.errors import UserError

TYPES = {"s1": "STS", "s2": "STS", "r1": "Retrieval", "r2": "Retrieval"}
ALL = ["s1", "s2", "r1", "r2"]


def frame(**have):
    """A long table; have: design -> its tasks, or "design@seed" -> its tasks."""
    rows = [(*unit.partition("@")[::2], task) for unit, tasks in have.items() for task in tasks]
    table = pd.DataFrame(rows, columns=["design", "seed", "task"])
    return table.assign(type=table["task"].map(TYPES), score=0.5, problem="")


HOLED = frame(a=ALL, b=["s1", "s2", "r1"], c=ALL, d=["s1", "r1", "r2"])


@pytest.mark.parametrize("policy", ["fail", "drop_tasks", "drop_models"])
def test_without_holes_every_policy_keeps_everything(policy):
    found = complete(frame(a=ALL, b=ALL), ["b", "a"], policy)
    assert (found.designs, found.tasks, found.notes, len(found.frame)) == (["b", "a"], ALL, [], 8)


def test_drop_tasks_keeps_every_design():
    found = complete(HOLED, list("abcd"), "drop_tasks")
    assert (found.designs, found.tasks, set(found.frame["task"])) == (list("abcd"), ["s1", "r1"], {"s1", "r1"})
    (note,) = found.notes
    assert "2 of 4 tasks are shared, and 2 of 4 designs have them all" in note
    assert note.endswith("(b lacks 1, d lacks 1): s2, r2.")


def test_drop_models_keeps_every_task():
    found = complete(HOLED, ["d", "c", "b", "a"], "drop_models")
    assert (found.designs, found.tasks, set(found.frame["design"])) == (["c", "a"], ALL, {"a", "c"})
    assert found.notes[0].endswith("(b lacks 1, d lacks 1).")


def test_fail_names_the_holes_and_both_ways_out():
    with pytest.raises(UserError, match=r"b lacks r2; d lacks s2\. .*missing=drop_tasks.*missing=drop_models"):
        complete(HOLED, list("abcd"), "fail")


def test_one_seed_with_a_hole_drops_its_design_or_its_task():
    table = frame(a=ALL, c=ALL, **{"b@0": ALL, "b@1": ["s1", "s2", "r1"]})
    assert complete(table, list("abc"), "drop_models").designs == ["a", "c"]
    assert complete(table, list("abc"), "drop_tasks").tasks == ["s1", "s2", "r1"]
    with pytest.raises(UserError, match=r"b \(seed 1\) lacks r2\."):
        complete(table, list("abc"), "fail")


@pytest.mark.parametrize(
    ("table", "designs", "policy", "message"),
    [
        (frame(a=ALL, c=ALL), "abc", "drop_tasks", "0 of 4 tasks are shared, and 2 of 3 designs have them all"),
        (frame(a=ALL, c=ALL), "xy", "drop_tasks", "No score of x, y is left"),
        (frame(a=ALL, b=ALL[:3]), "ab", "drop_models", "3 of 4 tasks are shared, and 1 of 2 designs"),
        (frame(a=["s1"], b=["s1"]), "ab", "drop_tasks", "Only one task is left: s1"),
    ],
)
def test_too_little_left(table, designs, policy, message):
    with pytest.raises(UserError, match=message):
        complete(table, list(designs), policy)


def test_a_score_that_cannot_be_used_is_a_hole():
    odd = frame(a=ALL, b=ALL).assign(model="m")
    odd.loc[7, "problem"] = "b.json: no test."
    found = complete(odd, ["a", "b"], "drop_tasks")
    assert found.tasks == ALL[:3]
    assert found.notes[0].endswith("r2: m. The first: b.json: no test.")
    with pytest.raises(UserError, match="no test"):
        complete(odd, ["a", "b"], "fail")


def test_auto_fails_for_our_own_runs_and_drops_tasks_of_published_scores(tmp_path):
    ours = Design("m", runs=(Run("0", tmp_path, {}),))
    assert policy_for("auto", [Design("x"), Design("y")]) == "drop_tasks"
    assert policy_for("auto", [Design("x"), ours]) == "fail"
    assert policy_for("drop_models", [ours]) == "drop_models"


def test_a_gap_of_a_wide_table(read_words, tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("model,SciFact,STS12,STS13\na,.1,.2,.3\nb,.2,.3,.4\nc,.2,.3,\n")
    assert list(read_words(f"scores={path}").material.matrix.index) == ["SciFact", "STS12"]
    whole = read_words(f"scores={path}", "missing=drop_models")
    assert list(whole.material.designs) == ["a", "b"]
    assert set(whole.material.pairs["second"]) == {"b"}
    with pytest.raises(UserError, match="against=c lacks tasks and was dropped"):
        read_words(f"scores={path}", "missing=drop_models", "against=c")
