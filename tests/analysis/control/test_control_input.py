"""Bad input of the control rule: foreign, missing, edited, mixed and half-finished manifests."""

import json
import sys

import pytest

from analysis.aa import main as aa
from analysis.control.__main__ import main as control
from cli.errors import UserError
from records.manifest import check_seal, sealed


def test_foreign_scores_prove_nothing(tmp_path, read_words, task_writer):
    for model in ("one", "two"):
        for k in range(3):
            task_writer(tmp_path / "results" / model / "r", f"STS1{k + 2}", 0.1 * k + 0.1)
    notes = read_words(f"scores={tmp_path}").notes
    assert any("No manifest stands beside these scores" in note for note in notes)


def test_foreign_scores_beside_ours_need_a_word(planted, read_words, task_writer, spread_scores):
    study = planted()
    for task, score in spread_scores(0.5).items():
        task_writer(study.root / "results" / "org__theirs" / "r1", task, score)
    with pytest.raises(UserError, match=r"also in manifest\. .*allow=\[manifest\]"):
        read_words(f"scores={study.root}")
    (note,) = read_words(f"scores={study.root}", "allow=manifest").material.footnotes
    assert note.text == "uncontrolled, since no manifest shows how it was made: org__theirs (allowed)"
    assert note.marked == {"org__theirs"}


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("foo", "There are "),
        ("thread", "Nearest: .*threads"),
        ("objective.temprature", "Nearest: objective.temperature."),
        ("versions.toch", "Nearest: versions.torch"),
    ],
)
def test_a_key_that_no_run_has_lets_nothing_through(planted, read_words, monkeypatch, key, near):
    """In the tables, in the audit alone, and where runs of one design are compared."""
    root = planted(_threads=2).root
    said = rf"allow= names '{key}', a key that no run has\. {near}"
    with pytest.raises(UserError, match=said):
        read_words(f"scores={root}", f"allow=[threads,{key}]")
    for command, place in ((control, str(root)), (aa, f"scores={root}")):
        monkeypatch.setattr(sys, "argv", ["", place, f"allow=[threads,{key}]"])
        with pytest.raises(UserError, match=said):
            command()


def test_what_a_run_may_have_is_no_unknown_key(planted, read_words):
    """Groups of keys, keys that only some runs or none of these have, and what the rule itself names."""
    keys = ["threads", "machine", "machine.instruction_sets", "manifest", "seed", "code.sha256", "code", "versions"]
    keys += ["evaluation.inputs", "evaluation", "data", "data.sha256", "lora", "base_config_sha256"]
    keys += ["batch_order_sha256", "trainer.max_steps", "study"]
    (note,) = read_words(f"scores={planted(_threads=2).root}", f"allow=[{','.join(keys)}]").material.footnotes
    assert note.keys == ("threads",)


def test_foreign_scores_have_no_keys_to_know(tmp_path, read_words, task_writer):
    for model in ("one", "two"):
        for k in range(3):
            task_writer(tmp_path / "results" / model / "r", f"STS1{k + 2}", 0.1 * k + 0.1)
    notes = read_words(f"scores={tmp_path}", "allow=[foo]").notes
    assert "allow=[foo] let nothing through: there are no manifests." in notes


def test_a_missing_manifest_is_named(planted, study, read_words):
    planted()
    (path,) = study.root.glob("results/s__eos-causal/*/run/manifest.json")
    path.unlink()
    with pytest.raises(UserError, match=r"s__eos-causal/seed0@.* has no manifest.json"):
        read_words(f"scores={study.root}")


def test_an_edited_manifest_is_named(planted, study, read_words):
    planted()
    (path,) = study.root.glob("results/s__eos-causal/*/run/manifest.json")
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"threads": 5}))
    with pytest.raises(UserError, match=r"s__eos-causal.*manifest.json was edited by hand"):
        read_words(f"scores={study.root}")
    del value["manifest_sha256"]
    path.write_text(json.dumps(value))
    with pytest.raises(UserError, match="was edited by hand: its manifest_sha256"):
        read_words(f"scores={study.root}")


def test_another_version_is_named(planted, read_words):
    root = planted(_manifest_version=1).root
    with pytest.raises(UserError, match=r"lastlayer-bi.*is of version 1; this program reads version 2"):
        read_words(f"scores={root}")


def test_scores_of_a_half_finished_run_are_left_out_by_name(planted, read_words):
    result = read_words(f"scores={planted(_status='running').root}")
    assert list(result.material.designs) == ["eos-causal", "multilayer-causal"]
    (note,) = [note for note in result.notes if note.startswith("Left out")]
    assert "s__lastlayer-bi/seed0@" in note


def test_the_seal_holds_for_any_change_and_survives_a_file(tmp_path):
    value = {"a": {"b": [1, 2.5, None]}, "p": tmp_path}
    whole = sealed(value)
    assert sealed(whole) == whole == json.loads(json.dumps(whole))
    check_seal(whole, tmp_path)
    for key, new in (("a", {"b": [1, 2.5, 0]}), ("c", 1), ("p", "")):
        with pytest.raises(UserError, match="edited by hand"):
            check_seal(whole | {key: new}, tmp_path)
