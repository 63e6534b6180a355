"""Bad input of the control rule: foreign, missing, edited, mixed and half-finished manifests."""

import json

import pytest

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


def test_a_missing_manifest_is_named(planted, study, read_words):
    planted()
    (path,) = study.root.glob("results/s__eos-causal/*/run/manifest.json")
    path.unlink()
    with pytest.raises(UserError, match=r"s__eos-causal/seed=0@.* has no run/manifest.json"):
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
    with pytest.raises(UserError, match="has no manifest_sha256, so it was edited by hand"):
        read_words(f"scores={study.root}")


def test_mixed_versions_are_named(planted, read_words):
    root = planted(_manifest_version=1).root
    with pytest.raises(UserError, match=r"mixed versions: .*is of version [12] and .*is of version [12]"):
        read_words(f"scores={root}")
    with pytest.raises(UserError, match=r"lastlayer-bi.*is of version 1; this program reads version 2|mixed"):
        read_words(f"scores={root}", "models=[lastlayer-bi,eos-causal]")


def test_scores_of_a_half_finished_run_are_left_out_by_name(planted, read_words):
    result = read_words(f"scores={planted(_status='running').root}")
    assert list(result.material.designs) == ["eos-causal", "multilayer-causal"]
    (note,) = [note for note in result.notes if note.startswith("Left out")]
    assert "s__lastlayer-bi/seed=0@" in note


def test_the_seal_holds_for_any_change_and_survives_a_file(tmp_path):
    value = {"a": {"b": [1, 2.5, None]}, "p": tmp_path}
    whole = sealed(value)
    assert sealed(whole) == whole == json.loads(json.dumps(whole))
    check_seal(whole, tmp_path)
    for key, new in (("a", {"b": [1, 2.5, 0]}), ("c", 1), ("p", "")):
        with pytest.raises(UserError, match="edited by hand"):
            check_seal(whole | {key: new}, tmp_path)
