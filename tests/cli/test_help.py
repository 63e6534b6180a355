"""`--help`: a screen that is read from conf/, so that it names what is there."""

import re
import shlex

import pytest

from cli.compose import CONF, check_overrides, composed, options, own_keys
from cli.help import EXAMPLES, help_screen
from cli.quoting import as_typed, evaluate_words, train_words
from cli.remarks import key_remarks
from tests.started import start
from training.mine.__main__ import QUOTED
from training.specialise.__main__ import specialise_words

COMMANDS = {
    "train": lambda words: check_overrides("train", train_words(words)),
    "evaluate": lambda words: composed("evaluate", evaluate_words(words)),
    "representation": lambda words: composed("representation", evaluate_words(words)),
    "mine": lambda words: composed("mine", as_typed(words, QUOTED)),
    "specialise": lambda words: composed("specialise", specialise_words(words)),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_screen_has_a_purpose_five_examples_and_every_group(name):
    lines = help_screen(name).splitlines()
    assert lines[0].endswith(".")
    start = lines.index("examples:") + 1
    assert all(line.startswith("  python ") for line in lines[start : start + EXAMPLES])
    shown = {match[1] for line in lines if (match := re.match(r"  (\w+)= ", line))}
    groups = {key for key in composed(name) if options(key)} | ({"design", "sweep"} if name == "train" else set())
    assert groups <= shown
    assert all(len(line) <= 140 for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_compose(name):
    modules = {"representation": "representation", "mine": "training.mine", "specialise": "training.specialise"}
    program = modules.get(name, f"{name}.py")
    for line in help_screen(name).splitlines():
        example = re.match(rf"  python (?:-m )?{re.escape(program)} (.*?)(?:  |$)", line.split(" training-free")[0])
        if example and "<" not in example[1]:
            COMMANDS[name](shlex.split(example[1]))


MODULES = {"train": ["train.py"], "evaluate": ["evaluate.py"], "study": ["study.py"], "analysis": ["-m", "analysis"]}
MODULES |= {"representation": ["-m", "representation"], "mine": ["-m", "training.mine"]}
MODULES |= {"specialise": ["-m", "training.specialise"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_the_configuration_is_shown_by_the_programs_that_say_so(name):
    """In conf/README.md and in their manuals; the others refuse the word."""
    (said,) = re.findall(r"With `--cfg job` (.*?) print ", (CONF / "README.md").read_text(encoding="utf-8"))
    shows = f"`{name}.py`" in said
    manual, shown = start(*MODULES[name], "--help"), start(*MODULES[name], "--cfg", "job")
    assert ("--cfg job" in manual.stdout) == shows == (shown.returncode == 0)
    assert ("conf/encoder.yaml" in manual.stdout) == (name in ("train", "evaluate", "representation", "specialise"))
    assert shows or shown.stderr.count("\n") == 1


def test_a_remark_of_several_lines_is_one():
    (run,) = [remark for key, _, remark in key_remarks("evaluate") if key == "readings"]
    assert "read one checkpoint (the untrained base, or a run) from one forward pass" in run
    assert {key.split(".")[0] for key, _, remark in key_remarks("evaluate") if remark} <= set(own_keys("evaluate"))
