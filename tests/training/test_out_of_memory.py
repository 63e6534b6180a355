"""Where memory runs out a step is run in smaller parts, under the same masks: the same loss and gradients."""

import pytest
import torch

from cli.errors import UserError
from training.mix_order import order_of
from training.module import StepModule
from training.objectives.objective import objective_class
from training.set_up import set_up

MUCH = 2**60  # bytes: torch's own allocator refuses them


@pytest.fixture
def one_step(compose_cell, pairs, lines, headed_model):
    """one_step("infonce", most): (module after one step's backward pass, loss), with room for `most` tokens at a time.

    The allocator fails, in the forward or in the backward pass, where a pass of the backbone has more.
    """

    def run(objective, words, most, where="forward"):
        data = ["data=jsonl", f"data.path='{pairs}'", "data.validation=4", "trainer.global_batch_size=16"]
        if objective == "mntp":
            data = ["objective=mntp", f"model.path={headed_model}", "data=text", f"data.path='{lines}'"]
            data += ["data.validation=8", "trainer.global_batch_size=16"]
        cfg = compose_cell("mean", "bi", *data, "lora.dropout=0.3", "token_budget=120", "precision=fp32", *words)
        kind = objective_class(objective)
        setup = set_up(cfg)
        instance = kind(setup, *kind.split(kind.read(cfg["data"], cfg["cache_dir"]), cfg))
        module = StepModule(instance, order_of(cfg, instance.examples), cfg)
        asked = []

        def full(tokens):
            asked.append(tokens)
            if tokens > most:
                torch.empty(MUCH)

        def before(_module, _words, named):
            if where == "forward":
                full(named["input_ids"].numel())

        def after(_module, _words, named, output):
            if where == "backward" and output.last_hidden_state.requires_grad:
                output.last_hidden_state.register_hook(lambda g: full(named["input_ids"].numel()))

        setup.encoder.backbone.register_forward_pre_hook(before, with_kwargs=True)
        setup.encoder.backbone.register_forward_hook(after, with_kwargs=True)
        _, layout, rows = module.prepared(0)
        loss = instance.backward(layout, rows, 0)
        assert max(asked) > most or most == MUCH
        return module, loss

    return run


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("infonce", ["model.attn_implementation=unpadded"]),
        ("infonce", ["model.attn_implementation=sdpa", "padding_side=left", "trainer.gradient_checkpointing=true"]),
        ("mntp", ["model.attn_implementation=sdpa"]),
    ],
)
def test_less_memory_gives_the_same_step(one_step, objective, words, where, capsys):
    usual, loss = one_step(objective, words, MUCH)
    module, again = one_step(objective, words, 40, where)
    assert (usual.objective.work.back_off, module.objective.work.back_off) == (0, 3)
    assert capsys.readouterr().err.count("Out of memory on") == 3
    assert torch.allclose(again, loss, atol=1e-6)
    wanted = {name: p.grad for name, p in usual.named_parameters() if p.grad is not None}
    found = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    assert wanted.keys() == found.keys()
    for name, gradient in wanted.items():
        assert torch.allclose(found[name], gradient, atol=1e-6, rtol=1e-4), name


def test_a_single_text_that_does_not_fit_is_an_error(one_step):
    with pytest.raises(UserError, match=r"Out of memory on a single text of \d+ tokens. Lower max_length"):
        one_step("infonce", [], 1)
