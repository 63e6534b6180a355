"""Where memory runs out a step is run in smaller parts, under the same masks: the same loss and gradients."""

import json
import socket
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp

from cli.errors import UserError
from tests.started import start
from training.mix_order import order_of
from training.module import StepModule
from training.objectives.objective import objective_class
from training.set_up import set_up

MUCH = 2**60  # bytes: torch's own allocator refuses them


def module_within(cfg, most, where="forward"):
    """Return (module, tokens of each pass so far), with room for `most` tokens at a time.

    The allocator fails, in the forward or in the backward pass, where a pass of the backbone has more.
    """
    kind = objective_class(cfg["objective"]["name"])
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
    return module, asked


def step_within(cfg, most, where="forward"):
    """Return (module after one step's backward pass, loss), with room for `most` tokens at a time."""
    module, asked = module_within(cfg, most, where)
    _, layout, rows = module.prepared(0)
    loss = module.objective.backward(layout, rows, 0)
    assert max(asked) > most or most == MUCH
    return module, loss


@pytest.fixture
def one_step(compose_cell, pairs, lines, headed_model):
    """one_step("infonce", words, most): `step_within` of a configuration; most=None: the configuration itself."""

    def run(objective, words, most, where="forward"):
        data = ["data=jsonl", f"data.path='{pairs}'", "data.validation=4", "trainer.global_batch_size=16"]
        if objective == "mntp":
            data = ["objective=mntp", f"model.path={headed_model}", "data=text", f"data.path='{lines}'"]
            data += ["data.validation=8", "trainer.global_batch_size=16"]
        cfg = compose_cell("mean", "bi", *data, "lora.dropout=0.3", "token_budget=120", "precision=fp32", *words)
        return cfg if most is None else step_within(cfg, most, where)

    return run


def gradients(module):
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def assert_same_step(found, wanted):
    """found, wanted: (loss, gradients)."""
    assert torch.allclose(found[0], wanted[0], atol=1e-6)
    assert found[1].keys() == wanted[1].keys()
    for name, gradient in wanted[1].items():
        assert torch.allclose(found[1][name], gradient, atol=1e-6, rtol=1e-4), name


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
    assert_same_step((again, gradients(module)), (loss, gradients(usual)))


@pytest.mark.parametrize("words", [[], ["objective=next_token", "attn=causal", "objective.held_out_percent=30"]])
def test_less_memory_gives_the_same_held_out_scores(one_step, words, capsys):
    cfg = one_step("mntp", words, None)
    (usual, _), (module, asked) = module_within(cfg, MUCH), module_within(cfg, 40)
    assert module.held_out_scores() == pytest.approx(usual.held_out_scores(), rel=1e-5)
    assert (usual.objective.work.back_off, module.objective.work.back_off) == (0, 3)
    assert max(asked) > 40
    assert capsys.readouterr().err.count("Out of memory on") == 3
    assert module.objective.work.encoder.training


def _process(rank, port, folder):
    place = {"rank": rank, "world_size": 2, "timeout": timedelta(seconds=60)}
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", **place)
    found = []
    for cfg, where in json.loads((folder / "steps.json").read_text()):
        module, loss = step_within(cfg, 40 if rank else MUCH, where)
        found.append((loss, gradients(module), module.objective.work.back_off))
    torch.save(found, folder / f"{rank}.pt")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def in_two_processes(folder):
    """Take each step of steps.json by two forks of this process, the second of which has little memory."""
    torch.set_num_threads(1)  # a fork has no other threads than the one that forks
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.start_processes(_process, args=(port, Path(folder)), nprocs=2, start_method="fork")


@pytest.mark.slow
def test_of_two_processes_both_take_the_step_in_the_same_parts_where_one_has_too_little_memory(one_step, tmp_path):
    unpadded = ["model.attn_implementation=unpadded"]
    kinds = [("infonce", unpadded, "forward"), ("infonce", unpadded, "backward"), ("mntp", [], "backward")]
    steps = [(one_step(objective, words, None), where) for objective, words, where in kinds]
    (tmp_path / "steps.json").write_text(json.dumps(steps))
    done = start("-c", f"from {__name__} import in_two_processes; in_two_processes({str(tmp_path)!r})")
    assert done.returncode == 0, done.stderr
    of_processes = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    for number, (cfg, _) in enumerate(steps):
        usual, loss = step_within(cfg, MUCH)
        for found, wanted, back_off in (of_process[number] for of_process in of_processes):
            assert back_off == 3
            assert_same_step((found, wanted), (loss, gradients(usual)))
    assert done.stderr.count("Out of memory on") == 9  # said once for both


def test_a_single_text_that_does_not_fit_is_an_error(one_step):
    with pytest.raises(UserError, match=r"Out of memory on a single text of \d+ tokens. Lower max_length"):
        one_step("infonce", [], 1)
