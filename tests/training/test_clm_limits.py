"""`objective=clm`: what its numbers may be, said before any text is read."""

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from training.batches import PackedBatches
from training.checks import check_sizes
from training.objectives.clm import CausalLM
from training.run import run


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.max_steps=0", "trainer.max_steps=0 must be a whole number, at least 1"),
        ("trainer.max_steps=many", "trainer.max_steps=many must be a whole number"),
        ("trainer.devices=2", "trainer.devices=2 must be a whole number, at least 1 and at most 1"),
        ("trainer.threads=-1", "trainer.threads=-1 must be a whole number, at least 1; null"),
        ("trainer.checkpoint_every=-1", "trainer.checkpoint_every=-1 must be"),
        ("objective.batch=0", "objective.batch=0 must be a whole number, at least 1"),
        ("objective.sequence_length=1", "objective.sequence_length=1 must be a whole number, at least 2"),
        ("objective.sequence_length=2048", "sequence_length=2048 is more than the 1024 positions of the model"),
        ("objective.lr=-1", "objective.lr=-1 must be a number"),
        ("objective.lr=fast", "objective.lr=fast must be a number"),
        ("objective.decay=2", "objective.decay=2 must be a number, at least 0 and at most 1"),
        ("objective.warmup=-1", "objective.warmup=-1 must be"),
        ("objective.betas=[0.9]", r"objective.betas=\[0.9\] must be two numbers"),
        ("objective.betas=0.9", "objective.betas=0.9 must be two numbers"),
        ("objective.betas=[0.9,1]", "must be two numbers of at least 0 and below 1"),
        ("objective.held_out_percent=0", "held_out_percent=0 must be a whole number, at least 1 and at most 99"),
        ("seed=-1", "seed=-1 must be a whole number, at least 0"),
        ("model.vocab_size=100", "model.vocab_size=100 must be a whole number, at least 259"),
        ("model.architecture.num_hidden_layers=0", "num_hidden_layers=0 must be a whole number"),
        ("precision=fp8", "precision=fp8 must be one of"),
        ("trainer.average=.5", "objective=clm saves the last weights"),
        ("model=tiny", "model=tiny has weights. Give model=tiny_scratch"),
        ("data=jsonl", "objective=clm reads docstrings, not data=jsonl"),
    ],
)
def test_a_mistake_is_one_line(override, message):
    words = [override] if override == "model=tiny" else ["model=tiny_scratch", override]
    with pytest.raises(UserError, match=message):
        run(plain(composed("train", ["objective=clm", *words])))


def test_the_recipe_of_the_base_model_passes():
    check_sizes(plain(composed("train", ["experiment=pretrain_tiny"])))


def test_without_warm_up_the_first_step_has_the_whole_rate():
    objective = composed("train", ["experiment=pretrain_tiny", "objective.warmup=0"])
    assert CausalLM.learning_rate_factor(_Steps(plain(objective)), 0) == 1.0


class _Steps:
    """The two fields that the learning rate depends on, without a model."""

    def __init__(self, config):
        self.cfg, self.keys = config, config["objective"]


def test_less_text_than_a_step_takes_is_refused():
    with pytest.raises(UserError, match=r"The text has 4 tokens, and a step takes objective.batch=2 sequences of"):
        PackedBatches([[5], [6]], eos=1, length=4, batch=2, seed=0)
