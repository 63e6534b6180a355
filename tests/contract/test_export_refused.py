"""An export that cannot be, or cannot be pushed, is one line that says why."""

import sys

import pytest

from cli.errors import UserError
from encoders.export.__main__ import main
from encoders.export.exported import load_exported


@pytest.mark.parametrize(("token", "why"), [(None, "Token is required"), ("hf_dummy", "Connection refused")])
def test_what_is_written_is_pushed_with_a_token_and_a_network(awake_run, tmp_path, monkeypatch, token, why):
    """The hub is not at hand here: nothing is sent, and the folder stands. HF_ENDPOINT is read at import."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.utils._headers.get_token", lambda: token)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=rf"written, but not on the hub: .*{why}.*\. Mend that, then hf upload lab/x"):
        main([f"run={awake_run('mean', 'bi')}", f"to={tmp_path / 'model'}", "push=lab/x"])
    assert (tmp_path / "model" / "model.safetensors").is_file()


REFUSED = {  # words, changes of the run -> what the error says
    "to={there}": "not empty",
    "to={new} adapter=apart": "merged or beside",
    "to={new} onnx=true adapter=beside": "takes adapter=merged",
    "to={new} onnx=yes": "false or true",
    "to={new} scores={there}": "no scores of",
    "to={new} score={there}": "Nearest: scores=",
    "adapter=merged": "to=<folder> is missing",
}


@pytest.mark.parametrize("words", REFUSED)
def test_wrong_words_are_one_line(awake_run, tmp_path, words):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    places = {"there": tmp_path / "there", "new": tmp_path / "new"}
    with pytest.raises(UserError, match=REFUSED[words]):
        main([f"run={awake_run('eos', 'causal')}", *words.format_map(places).split()])
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_graph_of_code_or_without_its_packages_is_refused(awake_run, tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"onnx=true does not fit .* is code of the folder"):
        main([f"run={awake_run('lastlayer', 'bi')}", f"to={tmp_path / 'model'}", "onnx=true"])
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(UserError, match=r"takes onnxscript, which is not installed: pip install '\.\[onnx\]'"):
        main([f"run={awake_run('mean', 'bi')}", f"to={tmp_path / 'model'}", "onnx=true"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("pooler", "changes", "facts", "said"),
    [
        ("eos", {}, {"status": "running"}, "not finished"),
        ("eos", {"pooler.last_real": False}, {}, "last_real=false"),
        ("lastlayer", {"pooler.mask_padding": False}, {}, "mask_padding=false"),
        ("moee", {"pooler.standardise": "batch"}, {}, "standardise=batch"),
        ("eos", {"model.trust_remote_code": True}, {}, "trust_remote_code"),
        ("eos", {"lineage": ["runs/a"]}, {}, "earlier stages"),
    ],
)
def test_what_cannot_be_exported_is_named(awake_run, pooler, changes, facts, said):
    with pytest.raises(UserError, match=said):
        load_exported(awake_run(pooler, "bi", changes, facts), merged="lineage" not in changes)
