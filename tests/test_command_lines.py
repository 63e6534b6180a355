"""Every entry point: Hydra's flags do what Hydra says or are refused in one line; a reader may leave."""

import os
import subprocess
import sys

import pytest
from omegaconf import OmegaConf

from cli.compose import CONF, composed
from cli.errors import guard
from tests.started import run_here, start

ENTRY_POINTS = {
    "train.py": ["train.py"],
    "evaluate.py": ["evaluate.py"],
    "analysis": ["-m", "analysis"],
    "analysis.control": ["-m", "analysis.control"],
    "analysis.aa": ["-m", "analysis.aa"],
    "representation": ["-m", "representation"],
    "studies.status": ["-m", "studies.status"],
    "training.mine": ["-m", "training.mine"],
    "training.specialise": ["-m", "training.specialise"],
}


def unread(*words):
    """Start an entry point as a process of its own, whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, *words],
            stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=600, cwd=CONF.parent,
        )  # fmt: skip
    finally:
        os.close(writing)


def refused(*words):
    """The one line with which a command line is refused."""
    done = run_here(*words)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.slow
@pytest.mark.parametrize("words", ENTRY_POINTS.values(), ids=ENTRY_POINTS)
def test_a_reader_who_has_gone_is_no_fault(words):
    """As in `python train.py --help | head`, where head has read enough."""
    done = start(*words, "--help", unread=True)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_is_one_line(capsys):
    def main():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        guard(main)
    assert (left.value.code, capsys.readouterr().err.count("\n")) == (130, 1)


@pytest.mark.slow
def test_nor_is_it_while_the_interpreter_closes():
    """Where the process is begun and closed by Python itself."""
    done = unread("train.py", "--help")
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--cfg", "job"], ["--cfg", "all", "-p", "hydra.job"], ["--info", "defaults"]])
def test_nor_is_it_where_hydra_prints(words):
    done = start("train.py", *words, unread=True)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("flag", [["--cfg", "job"], ["-c", "job"], ["--cfg=job"]])
def test_train_prints_its_configuration_as_hydra_does(flag):
    words = ["pooler=multilayer", "seed=3"]
    done = run_here("train.py", "attn=bi", *flag, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == OmegaConf.to_yaml(composed("train", ["attn=bi", *words]))


@pytest.mark.slow
def test_what_is_printed_is_hydras_own_text():
    """Hydra's own program, run on the same conf/; cli.compose makes its tables known."""
    main = f"hydra.main(config_path={str(CONF)!r}, config_name='train', version_base='1.3')"
    program = f"import hydra, cli.compose\n{main}(print)()"
    words = ["pooler=multilayer", "--cfg", "job", "-p", "pooler"]
    theirs, ours = (start(*p, *words) for p in (["-c", program], ["train.py"]))
    assert theirs.stdout.startswith("# @package pooler\n")
    assert ours.stdout == theirs.stdout


def test_a_part_is_printed_resolved():
    done = run_here("train.py", "--cfg", "job", "--resolve", "--package", "lora")
    assert done.stderr == ""
    assert "- q_proj" in done.stdout.splitlines()


def test_evaluate_prints_its_configuration_too():
    done = run_here("evaluate.py", "pooler=mean", "-c", "job", "tasks=[SciFact]")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == OmegaConf.to_yaml(composed("evaluate", ["pooler=mean", "tasks=[SciFact]", "~benchmark"]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.py", "-p", "trainer"], "--package says what --cfg shows"),
        (["train.py", "--cfg", "job", "-p", "trianer"], "There is no package 'trianer'. Nearest: trainer"),
        (["train.py", "-m", "--cfg", "job"], "--multirun and --cfg do not go together"),
        (["train.py", "--config-name", "evaluate"], "--config-name is not supported"),
        (["train.py", "-cd", "mine"], "--config-dir is not supported"),
        (["train.py", "--cfg", "jbo"], "invalid choice: 'jbo'"),
        (["train.py", "--fast"], "Unrecognized arguments: --fast"),
        (["evaluate.py", "--info"], "evaluate.py has no --info"),
        (["evaluate.py", "--cfg", "hydra"], "evaluate.py has no --cfg hydra"),
    ],
)
def test_what_is_not_supported_is_one_line(words, message):
    assert message in refused(*words)
