"""A manifest that was edited is noticed, also when the edit keeps it valid JSON."""

import json

import pytest

from cli.errors import UserError
from records.manifest import check_seal, sealed
from records.run_folder import RunFolder


def test_a_seal_survives_the_way_through_a_file(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write({"loss": 0.1 + 0.2, "path": tmp_path, "none": None, "nested": {"b": [1, 2.5], "a": "é"}})
    assert folder.manifest()["loss"] == 0.1 + 0.2


def test_order_of_keys_is_no_edit(tmp_path):
    manifest = sealed({"a": 1, "b": {"c": 2, "d": 3}})
    check_seal(json.loads(json.dumps(manifest, sort_keys=True)), tmp_path)
    check_seal(dict(reversed(manifest.items())), tmp_path)


@pytest.mark.parametrize("edit", [{"loss": 0.2}, {"new": None}, {"config": {"lr": 2e-3, "seed": 1}}])
def test_an_edit_is_named(tmp_path, edit):
    folder = RunFolder(tmp_path)
    folder.write({"loss": 0.1, "config": {"lr": 1e-3, "seed": 1}})
    held = json.loads(folder.manifest_path.read_text())
    folder.manifest_path.write_text(json.dumps(held | edit))
    with pytest.raises(UserError, match=r"manifest\.json was edited by hand"):
        folder.manifest()


def test_a_missing_seal_is_an_edit(tmp_path):
    with pytest.raises(UserError, match="edited"):
        check_seal({"a": 1}, tmp_path)
