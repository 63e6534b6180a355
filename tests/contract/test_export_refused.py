"""An export that cannot be is one line that says why."""

import pytest

from cli.errors import UserError
from encoders.export.__main__ import main
from encoders.export.exported import load_exported

REFUSED = {  # words, changes of the run -> what the error says
    "to={there}": "not empty",
    "to={new} adapter=apart": "merged or beside",
    "to={new} adaptor=beside": "Nearest: adapter=",
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


@pytest.mark.parametrize(
    ("pooler", "changes", "facts", "said"),
    [
        ("eos", {}, {"status": "running"}, "not finished"),
        ("eos", {"pooler.last_real": False}, {}, "last_real=false"),
        ("lastlayer", {"pooler.mask_padding": False}, {}, "mask_padding=false"),
        ("moee", {"pooler.standardise": "batch"}, {}, "standardise=batch"),
        ("eos", {"model.trust_remote_code": True}, {}, "trust_remote_code"),
        ("eos", {"init": {"merge": ["runs/a"]}}, {}, "earlier stages"),
    ],
)
def test_what_cannot_be_exported_is_named(awake_run, pooler, changes, facts, said):
    with pytest.raises(UserError, match=said):
        load_exported(awake_run(pooler, "bi", changes, facts), merged="init" not in changes)
