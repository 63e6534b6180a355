"""Every entry point: what is wrong is one line with exit code 2, Hydra's flags are Hydra's, a reader may leave."""

import os

import pytest
from omegaconf import OmegaConf

from cli.compose import composed
from cli.errors import guard
from tests.started import run_here, start

ENTRY_POINTS = {
    "train.py": ["train.py"],
    "evaluate.py": ["evaluate.py"],
    "study.py": ["study.py"],
    "analysis": ["-m", "analysis"],
    "representation": ["-m", "representation"],
    "training.mine": ["-m", "training.mine"],
    "training.specialise": ["-m", "training.specialise"],
}


@pytest.mark.slow
@pytest.mark.parametrize("words", ENTRY_POINTS.values(), ids=ENTRY_POINTS)
def test_help_is_read_or_left(words):
    assert "python " in start(*words, "--help").stdout
    done = start(*words, "--help", unread=True)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_is_one_line(capsys):
    def main():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        guard(main)
    assert (left.value.code, capsys.readouterr().err.count("\n")) == (130, 1)


@pytest.mark.parametrize(("program", "words"), [("train", ["attn=bi", "seed=3"]), ("evaluate", ["pooler=mean"])])
def test_a_configuration_is_printed_as_hydra_does(program, words):
    done = run_here(f"{program}.py", *words, "--cfg", "job")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == OmegaConf.to_yaml(composed(program, words)).strip()


@pytest.mark.parametrize("words", [["train.py", "pooler=eo"], ["evaluate.py", "run=nowhere"], ["study.py", "jobs=0"]])
def test_a_mistake_is_one_line(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_here(*words)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("error: ")
    assert os.listdir(tmp_path) == []
