"""Files appear whole or not at all."""

import errno
import os
from stat import S_IMODE

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from cli.errors import UserError, explained
from records.files import replacing, write_text


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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (SafetensorError("I/O error: No space left on device (os error 28)"), "No space left on device"),
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        (OSError(errno.ESTALE, "Stale file handle"), "Stale file handle"),
    ],
)
def test_a_fault_of_the_disk_is_one_line_and_keeps_what_was_there(tmp_path, error, words):
    write_text(tmp_path / "last.ckpt", "good")
    path = tmp_path / "last.ckpt"
    with pytest.raises(UserError, match=f"{words} while writing {path}"), replacing(path):
        raise error
    assert (tmp_path / "last.ckpt").read_text() == "good"
    with pytest.raises(UserError, match=words), explained():
        raise error


@pytest.fixture(params=[0o022, 0o027, 0o002])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_and_folders_have_the_modes_of_the_umask(tmp_path, umask):
    """safetensors writes with mode 600 whatever the umask: a colleague on a shared disk could not read a run."""
    with replacing(tmp_path / "adapter") as draft:
        (draft / "inner").mkdir(parents=True)
        save_file({"a": torch.zeros(2)}, draft / "inner" / "adapter_model.safetensors")
        (draft / "inner").chmod(0o700)
        (draft / "config.json").write_text("{}")
    modes = {p.name: S_IMODE(p.stat().st_mode) for p in [tmp_path / "adapter", *(tmp_path / "adapter").rglob("*")]}
    files, folders = 0o666 & ~umask, 0o777 & ~umask
    assert modes == {"adapter": folders, "inner": folders, "adapter_model.safetensors": files, "config.json": files}
