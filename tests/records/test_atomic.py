"""Files appear whole or not at all."""

import errno

import pytest

from records.atomic import replacing, write_text
from records.errors import UserError


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    write_text(tmp_path / "a", "old")
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a") as draft:
        draft.write_text("half")
        _ = 1 / 0
    assert (tmp_path / "a").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_folder_is_replaced_whole(tmp_path):
    for content in ("one", "two"):
        with replacing(tmp_path / "f") as draft:
            draft.mkdir()
            (draft / content).write_text(content)
    assert [p.name for p in (tmp_path / "f").iterdir()] == ["two"]


def test_a_full_disk_is_one_line_and_keeps_what_was_there(tmp_path):
    write_text(tmp_path / "last.ckpt", "good")
    with pytest.raises(UserError, match="No space left"), replacing(tmp_path / "last.ckpt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (tmp_path / "last.ckpt").read_text() == "good"
