"""Holes in the table: what each policy keeps, what it says, and where it gives up."""

import json

import pandas as pd
import pytest

from analysis.manifests.designs import Design, Run
from analysis.scores import complete as module
from analysis.scores.long_table import Scores, table
from cli.errors import UserError

TYPES = {"s1": "STS", "s2": "STS", "r1": "Retrieval", "r2": "Retrieval"}
ALL = ["s1", "s2", "r1", "r2"]


def frame(**have):
    """A long table; have: design -> its tasks, or "design@seed" -> its tasks."""
    rows = [(*unit.partition("@")[::2], task) for unit, tasks in have.items() for task in tasks]
    rows = pd.DataFrame(rows, columns=["model", "seed", "task"])
    return table(rows.assign(type=rows["task"].map(TYPES), score=0.5)).assign(design=rows["model"])


def complete(rows, designs, policy, runs=()):
    every = {design: Design(design, runs=runs) for design in designs}
    return module.complete(Scores(rows[rows["design"].isin(list(every))], every), policy)


HOLED = frame(a=ALL, b=["s1", "s2", "r1"], c=ALL, d=["s1", "r1", "r2"])


@pytest.mark.parametrize("policy", ["fail", "drop_tasks", "drop_models"])
def test_without_holes_every_policy_keeps_everything(policy):
    found = complete(frame(a=ALL, b=ALL), ["b", "a"], policy)
    assert (tuple(found.designs), found.tasks, found.notes, len(found.frame)) == (("b", "a"), ALL, (), 8)


def test_drop_tasks_keeps_every_design():
    found = complete(HOLED, "abcd", "drop_tasks")
    assert (tuple(found.designs), found.tasks, set(found.frame["task"])) == (tuple("abcd"), ["s1", "r1"], {"s1", "r1"})
    (note,) = found.notes
    assert "2 of 4 tasks are shared, and 2 of 4 designs have them all" in note
    assert note.endswith("(b lacks 1, d lacks 1): s2, r2.")


def test_drop_models_keeps_every_task():
    found = complete(HOLED, "dcba", "drop_models")
    assert (tuple(found.designs), found.tasks, set(found.frame["design"])) == (("c", "a"), ALL, {"a", "c"})
    assert found.notes[0].endswith("(b lacks 1, d lacks 1).")


def test_a_design_without_any_score_is_left_out_by_name():
    for policy in ("drop_tasks", "drop_models"):
        found = complete(frame(a=ALL, c=ALL), "abc", policy)
        assert (tuple(found.designs), found.tasks) == (("a", "c"), ALL)
        assert found.notes == ("Left out, since they have no score of these tasks: b.",)


def test_fail_names_the_holes_and_both_ways_out():
    with pytest.raises(UserError, match=r"b lacks r2; d lacks s2\. .*missing=drop_tasks.*missing=drop_models"):
        complete(HOLED, "abcd", "fail")


def test_one_seed_with_a_hole_drops_its_design_or_its_task():
    rows = frame(a=ALL, c=ALL, **{"b@0": ALL, "b@1": ["s1", "s2", "r1"]})
    assert list(complete(rows, "abc", "drop_models").designs) == ["a", "c"]
    assert complete(rows, "abc", "drop_tasks").tasks == ["s1", "s2", "r1"]
    with pytest.raises(UserError, match=r"b \(seed 1\) lacks r2\."):
        complete(rows, "abc", "fail")


@pytest.mark.parametrize(
    ("rows", "designs", "policy", "message"),
    [
        (frame(a=ALL[:2], b=ALL[2:]), "ab", "drop_tasks", "0 of 4 tasks are shared, and 0 of 2 designs have them all"),
        (frame(a=ALL, c=ALL), "xy", "drop_tasks", "No score of x, y is left"),
        (frame(a=ALL, c=ALL), "ax", "drop_tasks", "Only a has a score of these tasks"),
        (frame(a=ALL, b=ALL[:3]), "ab", "drop_models", "3 of 4 tasks are shared, and 1 of 2 designs"),
        (frame(a=["s1"], b=["s1"]), "ab", "drop_tasks", "Only one task is left: s1"),
    ],
)
def test_too_little_left(rows, designs, policy, message):
    with pytest.raises(UserError, match=message):
        complete(rows, designs, policy)


def test_a_score_that_cannot_be_used_is_a_hole():
    odd = frame(a=ALL, **{"b@0": ALL, "b@1": ALL})
    odd.loc[7, "problem"] = "b.json: no test."
    found = complete(odd, "ab", "drop_tasks")
    assert found.tasks == ALL[:3]
    assert found.notes[0].endswith("r2 (b). The first: b.json: no test.")
    with pytest.raises(UserError, match="no test"):
        complete(odd, "ab", "fail")
    with pytest.raises(UserError, match="gone"):
        complete(odd.assign(problem="gone"), "ab", "drop_tasks")
    odd.loc[8:, "problem"] = "gone"
    with pytest.raises(UserError, match="0 of 4 tasks are shared"):  # all of seed 1: no mean of fewer seeds
        complete(odd, "ab", "drop_tasks")


def test_auto_fails_for_our_own_runs_and_drops_tasks_of_published_scores(tmp_path):
    assert len(complete(HOLED, "abcd", "auto").tasks) == 2
    with pytest.raises(UserError, match="The task sets differ"):
        complete(HOLED, "abcd", "auto", runs=(Run("0", tmp_path, {}),))
    assert list(complete(HOLED, "abcd", "drop_models", runs=(Run("0", tmp_path, {}),)).designs) == ["a", "c"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"mteb_version": "1.1.0", "mteb_dataset_name": "SciFact", "test": {"cos_sim": {"spearman": 0.7}}}',
        '{"scores": {"test": [{"main_score": NaN}]}}',
        '{"scores": {"test": [0.7]}}',
    ],
)
def test_a_file_without_a_score_is_named_and_left_out_under_a_policy_alone(tmp_path, read_words, task_writer, text):
    """Broken, of an old mteb, not a number, of another program."""
    for model in ("one", "two", "three"):
        for k, task in enumerate(("SciFact", "BIOSSES", "STS12")):
            path = task_writer(tmp_path / "results" / model / "r", task, 0.5 + 0.1 * k)
    for name in ("SciFact", "no_task_of_anyone"):
        path.with_name(f"{name}.json").write_text(text)
    words = f"scores={tmp_path}"
    for more in ((), ("missing=drop_tasks",)):
        found = read_words(words, *more)
        assert list(found.compared.matrix.index) == ["BIOSSES", "STS12"]
        assert any("SciFact (three)" in note and "no_task_of_anyone (three)" in note for note in found.notes)
    assert list(read_words(words, "missing=drop_models").compared.designs) == ["one", "two"]
    with pytest.raises(UserError, match=r"three.*SciFact\.json"):
        read_words(words, "missing=fail")


def test_two_versions_of_mteb_in_one_table_are_named(tmp_path, read_words, task_writer):
    for k, (model, version) in enumerate((("one", "2.20.0"), ("two", "2.20.0"), ("three", "1.38.0"))):
        for task in ("SciFact", "BIOSSES"):
            path = task_writer(tmp_path / "results" / model / "r", task, 0.5 + 0.1 * k)
            path.write_text(json.dumps({**json.loads(path.read_text()), "mteb_version": version}))
    said = (
        "Scores of several versions of mteb stand in one table, and may not compare: 1.38.0 (three); 2.20.0 (one, two)."
    )
    assert said in read_words(f"scores={tmp_path}").notes
    assert not any("versions of mteb" in n for n in read_words(f"scores={tmp_path}", "models=[one,two]").notes)


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "NA"])
def test_a_missing_cell_of_a_csv(read_words, tmp_path, cell):
    path = tmp_path / "holes.csv"
    rows = [("a", ".1", ".2", ".3"), ("b", ".2", ".3", ".4"), ("c", ".2", ".3", cell)]
    tasks = ("SciFact", "STS12", "STS13")
    wide = [",".join(row) for row in (("model", *tasks), *rows)]
    long = ["model,task,score", *(f"{row[0]},{t},{s}" for row in rows for t, s in zip(tasks, row[1:], strict=True))]
    for lines in (wide, long):
        path.write_text("\n".join(lines))
        assert list(read_words(f"scores={path}").compared.matrix.index) == ["SciFact", "STS12"]
        whole = read_words(f"scores={path}", "missing=drop_models")
        assert list(whole.compared.designs) == ["a", "b"]
        with pytest.raises(UserError, match="against=c lacks tasks and was dropped"):
            read_words(f"scores={path}", "missing=drop_models", "against=c")
        with pytest.raises(UserError, match="STS13"):
            read_words(f"scores={path}", "missing=fail")
