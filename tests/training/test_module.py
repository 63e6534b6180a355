"""The learning rate, and the next step's tokens, made while a step runs."""

import pytest
import pytorch_lightning as pl

from cli.errors import UserError
from training.module import Prefetcher, StepModule, decay_steps


def rates(cfg, an_epoch):
    """The factor of every step, of a module that has nothing but its schedule."""
    module = StepModule.__new__(StepModule)
    pl.LightningModule.__init__(module)
    module.cfg = cfg
    module.decay_steps = decay_steps(cfg, an_epoch)
    return [module.learning_rate_factor(step) for step in range(cfg["trainer"]["max_steps"])]


def config(steps, warmup, epochs):
    return {"trainer": {"max_steps": steps}, "objective": {"warmup": warmup, "decay_epochs": epochs}}


def test_by_default_the_rate_ends_one_step_after_the_last():
    assert rates(config(5, 1, None), 100) == pytest.approx([1.0, 1.0, 0.75, 0.5, 0.25])


def test_a_warm_up_longer_than_the_run_is_cut_to_it():
    assert rates(config(4, 10, None), 100) == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_in_three_epochs_of_which_a_part_is_trained_the_rate_hardly_falls():
    """transformers' linear schedule over 3 epochs of 100 steps, of which LLM2Vec's code trains the first steps."""
    found = rates(config(20, 0, 3), 100)
    assert found == pytest.approx([(300 - step) / 300 for step in range(20)])
    assert found[-1] > 0.93


def test_a_schedule_that_ends_before_the_run_is_refused():
    with pytest.raises(UserError, match=r"decay_epochs=2 ends at step 20, before"):
        decay_steps(config(21, 0, 2), 10)
    assert decay_steps(config(20, 0, 2), 10) == 20


def test_each_step_is_made_once_and_none_beyond_the_last():
    asked = []
    prefetcher = Prefetcher(lambda step: asked.append(step) or step * step, steps=5)
    assert [prefetcher.take(step) for step in range(2, 5)] == [4, 9, 16]
    assert asked == [2, 3, 4]


def test_an_error_is_raised_at_its_own_step():
    def make(step):
        if step == 2:
            raise UserError("A text is empty.")
        return step

    prefetcher = Prefetcher(make, steps=4)
    assert [prefetcher.take(0), prefetcher.take(1)] == [0, 1]
    with pytest.raises(UserError, match="empty"):
        prefetcher.take(2)
    assert prefetcher.take(3) == 3
