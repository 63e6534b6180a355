"""A kill of a training run: nothing is lost. The long form is `python -m benchmarks.chaos`."""

import pytest

from tests.started import start


@pytest.mark.slow
def test_a_killed_run_ends_as_an_undisturbed_one(tmp_path):
    done = start("-m", "benchmarks.chaos", "kills=1", "only=infonce", f"work={tmp_path}")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "| **all** |" in done.stdout
    (total,) = [line for line in done.stdout.splitlines() if line.startswith("| **all**")]
    _, _, trials, kills, equal, refused, lost, _ = (cell.strip() for cell in total.split("|"))
    assert (int(kills), int(lost)) == (1, 0)
    assert int(trials) == int(equal) + int(refused)


def test_words_are_checked():
    done = start("-m", "benchmarks.chaos", "only=infonse")
    assert done.returncode == 2
    assert "Nearest: infonce" in done.stderr
