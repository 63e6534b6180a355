"""Rounds, ratios, the sections of the page, and the processes of the start-up benchmark."""

import os
import sys

import pytest

from benchmarks import rounds
from benchmarks.page import placed
from benchmarks.rounds import in_turn, quickest, ratio, spread
from benchmarks.speed import startup, work
from benchmarks.speed.startup import Start, cost, starts
from cli.compose import check_overrides
from cli.errors import UserError
from corpora.triples import Triple


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the contestants move."""

    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(rounds, "time", made)
    return made


def contestant(clock, calls, name, cost):
    def run(item):
        calls.append((name, item))
        clock.now += cost * item
        return 10.0 * item

    return run


def test_every_item_goes_to_all_in_rotating_order(clock):
    calls = []
    run = {name: contestant(clock, calls, name, cost) for name, cost in {"a": 1.0, "b": 2.0, "c": 4.0}.items()}
    rates = in_turn(run, [1, 2], warm_up=7)
    assert calls[:3] == [("a", 7), ("b", 7), ("c", 7)]
    assert calls[3:] == [("a", 1), ("b", 1), ("c", 1), ("b", 2), ("c", 2), ("a", 2)]
    assert rates == {"a": [10.0, 10.0], "b": [5.0, 5.0], "c": [2.5, 2.5]}
    assert ratio(rates, "a", "c").median == 4.0
    assert quickest({name: run[name] for name in "cba"}, 3) == "a"


def test_ratio_is_taken_within_a_round():
    rates = {"a": [1.0, 10.0, 100.0], "b": [2.0, 5.0, 50.0]}
    assert ratio(rates, "a", "b") == spread([0.5, 2.0, 2.0])
    assert spread(list(range(11))) == rounds.Spread(5.0, 1.0, 9.0)


def test_a_section_is_added_once_and_then_replaced():
    page = "# Performance\n\nWritten by hand.\n"
    once = placed(placed(page, "speed", "old\n"), "start", "other\n")
    again = placed(once, "speed", "new\n")
    assert again == once.replace("old", "new")
    assert again.startswith(page)
    assert again.count("measured: speed") == 1


def test_a_process_is_timed_to_a_line_or_its_end():
    shell = dict(os.environ)
    assert min(cost(("-c", "pass"), None, shell)[:2]) > 0
    waits = "import time; print('step 1 of 2', flush=True); time.sleep(600)"
    assert cost(("-c", waits), "step 1 of 2", shell).clock < 600
    with pytest.raises(UserError, match="did not start"):
        cost(("-c", "raise SystemExit('no such thing')"), "step 1 of 2", shell)
    with pytest.raises(UserError, match="no such thing"):
        cost(("-c", "raise SystemExit('no such thing')"), None, shell)


def test_commands_are_timed_in_the_environment_of_the_shell(monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "")  # so that it is put back as it was
    monkeypatch.delenv("TOKENIZERS_PARALLELISM")
    monkeypatch.setattr(sys, "argv", ["startup", "--quick", "--threads", "1"])
    seen = "import os; assert 'TOKENIZERS_PARALLELISM' not in os.environ; assert os.environ['OMP_NUM_THREADS'] == '1'"
    monkeypatch.setattr(startup, "starts", lambda folder: [Start("it", ("-c", seen), None, seen)])
    startup.main()
    assert os.environ["TOKENIZERS_PARALLELISM"]  # which this process was given


def test_the_timed_training_is_one_that_train_takes(tmp_path):
    train = starts(tmp_path)[0]
    check_overrides("train", list(train.words[1:]))


def test_batches_repeat_no_text_and_spell_no_special_token(monkeypatch):
    repeated = [Triple("q", f"p{i}", (f"n{i}",)) for i in range(9)]
    pool = [*repeated, *(Triple(f"q{i}", f"p{i}", (f"n{i}",)) for i in range(20))]
    monkeypatch.setattr(work, "_triples", lambda source: pool)
    made = work.batches("docstrings", 5, 3)
    assert len({t.query for batch in made for t in batch}) >= 13
    for batch in made:
        assert len(set(work.texts_of(batch))) == 15
    with pytest.raises(UserError, match="Lower the batch"):
        work.batches("docstrings", 5, 6)
    assert not work._ordinary(Triple("a <|mask|>", "b", ("c",)))
