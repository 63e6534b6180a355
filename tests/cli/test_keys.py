"""The keys of a command alone: read from its file in conf/, so that no second list has to agree."""

from cli.compose import composed, own_keys, plain
from records.identity import BOOKKEEPING, OF_STATES, below


def test_a_commands_own_keys_are_those_that_training_does_not_compose():
    shared = set(plain(composed("train")))
    for name in ("evaluate", "representation"):
        keys = set(plain(composed(name)))
        assert set(own_keys(name)) - {"launcher"} == keys - shared, name


def test_no_key_of_the_command_reaches_the_states():
    keys = {*own_keys("evaluate")} - {"launcher"}  # which says who runs a command, of train.py too
    assert not [key for key in keys if below(key, OF_STATES) or below(key, BOOKKEEPING)]
