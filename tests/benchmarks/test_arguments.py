"""What is wrong in the words after `python -m benchmarks.<name>`: one line on standard error and exit code 2."""

import runpy
import subprocess
import sys

import pytest

from benchmarks.arguments import Parser, share, taken_out, whole
from cli.errors import UserError
from tests.started import ROOT

WRONG = [
    ("sweeps.frozen_probe", "steps=a", "steps=a must be a whole number above 0, such as steps=40."),
    ("sweeps.frozen_probe", "steps=0", "steps=0 must be a whole number above 0"),
    ("sweeps.frozen_probe", "trainer.global_batch_size=-2", "global_batch_size=-2 must be a whole number, at least 1"),
    ("sweeps.frozen_probe", "trainer.devices=2", "backbone.frozen=true trains in one process"),
    ("speed.invariance", "max_length=long", "max_length=long must be a whole number, at least 4"),
    ("sweeps.divergences", "", "Name a folder of runs, such as runs/embedded."),
    ("sweeps.recipe", "runs/nowhere", "runs/nowhere is not a folder"),
    ("calibrate.rank_level", "sets=-5", "sets=-5 must be a whole number above 0"),
    ("calibrate.effect_level", "set=5", "There is no argument 'set=5'. Nearest: sets. Write sets=2000."),
    ("calibrate.seed_coverage", "sets=", "sets= must be a whole number above 0"),
    ("calibrate.calibration", str(ROOT / "pyproject.toml"), "is no csv with a column model"),
    ("speed.startup", "--rounds=0", "argument --rounds: 0 must be a whole number above 0"),
    ("speed.encoding_speed", "--threads=two", "argument --threads: two must be a whole number above 0"),
    ("speed.training_speed", "--dropout=1.5", "argument --dropout: 1.5 must be a number from 0 to below 1"),
]


@pytest.mark.parametrize(("name", "word", "message"), WRONG, ids=[f"{name} {word}" for name, word, _ in WRONG])
def test_one_line_and_exit_code_2(name, word, message, monkeypatch, capfd):
    monkeypatch.setattr("sys.argv", [name, *filter(None, [word])])
    with pytest.raises(SystemExit) as left:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    refused(left.value.code, *capfd.readouterr(), message)


@pytest.mark.slow
def test_no_library_says_a_word_before():
    """As the first of them, where importing the libraries is part of the process."""
    name, word, message = WRONG[0]
    command = [sys.executable, "-m", f"benchmarks.{name}", word]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    refused(done.returncode, done.stdout, done.stderr, message)


def refused(code, out, err, message):
    """One line on standard error, nothing on standard output, exit code 2."""
    assert code == 2, err
    assert message in err
    assert len(err.splitlines()) == 1
    assert out == "", "nothing was begun"


def test_a_number_is_taken_out_and_the_other_words_stay():
    assert taken_out(["a=b", "steps=7", "steps.x=1"], "steps", 40) == (7, ["a=b", "steps.x=1"])
    assert taken_out(["a=b"], "steps", 40) == (40, ["a=b"])
    for word in ("steps", "steps=1.5", "steps=-1", "steps=²"):
        with pytest.raises(UserError, match="must be a whole number above 0"):
            taken_out([word], "steps", 40)


def test_the_parser_reads_what_is_right():
    parser = Parser(prog="p")
    parser.add_argument("--rounds", type=whole)
    parser.add_argument("--dropout", type=share)
    found = parser.parse_args(["--rounds", "3", "--dropout", "0"])
    assert (found.rounds, found.dropout) == (3, 0.0)
    with pytest.raises(UserError, match=r"unrecognized arguments: --round2. Type p --help"):
        parser.parse_args(["--round2"])
