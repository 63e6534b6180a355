"""`--help` is a command's file of conf/: each key has a remark, and its examples are commands that compose."""

import re
import shlex

import pytest
import yaml

from cli.compose import CONF, SWEEP, check_sweep, composed, flags_and_words, groups, help_screen, options
from studies.jobs import split_words
from tests.started import run_here

PROGRAMS = ("train", "evaluate", "representation", "mine", "specialise", "study", "analysis")


@pytest.mark.parametrize("name", [*PROGRAMS, "encoder"])
def test_every_key_has_a_remark(name):
    text = re.sub(r"(?ms)^(hydra|order|  wordings):.*?(?=^\w|\Z)", "", (CONF / f"{name}.yaml").read_text())
    keys = re.findall(r"^ *\w+: .*$", text, re.M)
    assert keys
    assert [key for key in keys if "#" not in key] == []


@pytest.mark.parametrize("name", PROGRAMS[:-1])
def test_the_examples_of_a_program_compose(name):
    lines = re.findall(r"^(python (?:-m )?\S+)((?: \S+=(?:\"[^\"]*\"|'[^']*'|\S+)| -m)*)", help_screen(name), re.M)
    assert lines
    for program, words in lines:
        arguments = [word.replace("...", "x") for word in shlex.split(words)]
        if "train.py" in program:
            flags, overrides = flags_and_words("train.py", arguments)
            check_sweep("train", overrides, bool({*SWEEP} & {*flags}))
        elif "study.py" in program:
            composed("train", split_words(arguments).train)


@pytest.mark.parametrize("name", ["train", "evaluate", "study"])
def test_help_is_a_screen_and_names_options_that_there_are(name):
    done = run_here(f"{name}.py", "--help")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 40
    assert 4 <= sum(line.startswith("python ") for line in lines) <= 8
    named = re.findall(r"^  (\w+)= +(.*)$", done.stdout, re.M)
    known = {group: {*options(group)} for group in groups()}
    words = {group: re.findall(r"[\w/]+", re.sub(r"\(.*?\)|[:;].*", "", text)) for group, text in named}
    assert [(g, w) for g, of in words.items() if g in known for w in of if w not in known[g]] == []


@pytest.mark.parametrize("file", sorted(CONF.rglob("*.yaml")), ids=lambda file: str(file.relative_to(CONF)))
def test_each_file_of_conf_composes_by_its_name(file):
    assert yaml.safe_load(file.read_text()) is not None
    if file.parent == CONF or file.parts[len(CONF.parts)] in ("benchmark",):
        return
    group, *name = file.relative_to(CONF).with_suffix("").parts
    composed("train", [f"{group}={'/'.join(name)}"])
