"""conf/README.md lists the groups of conf/, their options and who uses them, and nothing else."""

import re

import pytest

from cli.compose import CONF, composer, groups, options

PROGRAMS = ("train", "evaluate", "representation", "mine", "specialise")
BY_FILE = ("attn", "objective", "pooler")  # an option is a Python file and a YAML, and no third place has to name it
ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = {name: (listed, used) for name, listed, used in ROW.findall((CONF / "README.md").read_text())}


@pytest.fixture(scope="module")
def defaults():
    """Program -> its groups and the options that they have where nothing is said."""
    with composer() as compose:
        found = {p: compose(p, overrides=[], return_hydra_config=True).hydra.runtime.choices for p in PROGRAMS}
    known = {p: {name: option for name, option in choices.items() if name in groups()} for p, choices in found.items()}
    return {**known, "representation": {**known["representation"], "prompts": "moee"}}  # prompts.wordings=


def test_each_group_has_a_row():
    assert list(ROWS) == groups(), "in the order of the alphabet"


@pytest.mark.parametrize("group", groups())
def test_each_option_is_named_and_the_default_is_bold(group, defaults):
    listed, used = ROWS[group]
    named = re.findall(r"`([\w/]+)`", listed)
    assert set(named) <= set(options(group))
    assert group in BY_FILE or sorted(named) == sorted(options(group))
    assert used.split(", ") == [p for p in PROGRAMS if group in defaults[p]]
    usual = defaults[used.split(", ")[0]][group]
    assert re.findall(r"\*\*`([\w/]+)`\*\*", listed) == ([usual] if usual else [])


@pytest.mark.parametrize("group", groups())
def test_no_two_options_are_the_same(group):
    alike = [str(keys) for keys in options(group).values()]
    assert len(set(alike)) == len(alike)
