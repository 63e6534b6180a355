"""No test reads what an earlier session left, and none leaves a later one anything to read."""

from pathlib import Path

import pytest

from cli.compose import composed
from records.files import write_json
from tests.started import ROOT, start


@pytest.mark.parametrize("key", ["cache_dir", "runs_dir"])
def test_default_places_are_those_of_this_session(tmp_path_factory, key):
    place = Path(composed("train")[key]).resolve()
    assert place.is_relative_to(tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("folder", ["runs/a", "cache", "cache/embeddings", "cache/states", "cache/training_texts"])
def test_what_is_written_into_the_checkouts_own_is_refused(folder):
    with pytest.raises(AssertionError, match="would outlive this session"):
        write_json(ROOT / folder / "written.json", {})
    assert not (ROOT / folder / "written.json").exists()


@pytest.mark.slow
def test_processes_begin_in_the_same_place():
    done = start("-c", "import os, records.manifest; print(os.getcwd(), records.manifest.ROOT)")
    assert done.stdout.split() == [str(Path.cwd()), str(ROOT)]
