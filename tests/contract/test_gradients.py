"""A gradient depends on its batch alone: on no chunks, GradCache, gradient checkpointing or number of processes."""

import json
import socket
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp

from encoders.loading import build_tokenizer
from tests.cells import CONTRACT
from tests.contract.conftest import is_read, shared_adapted
from tests.started import start
from training.large_batch import ChunkPlan, LargeBatch

TEXTS = [
    ("", "the sum of two arrays"),
    ("", "a new array is returned with the same shape and type of the first argument"),
    ("", "type of the first argument"),
    ("find the rest", "the shape of the sum of the two arrays"),
    ("", "two arrays of the same shape as a new array"),
    ("", "its first argument"),
    ("find the rest", "returned as new"),
]
EQUAL = 1e-5  # of the largest entry: float32 sums in another order, measured 1.2e-6; the same chunks: 0
DIRECT, CACHED = ChunkPlan(4096, 3, gradcache=False), ChunkPlan(4096, 3, gradcache=True)
STEP = 5


def work_on(cfg, plan):
    encoder, _ = shared_adapted(cfg)
    return LargeBatch(encoder, build_tokenizer(cfg, 128), plan, seed=3)


@contextmanager
def checkpointed(backbone):
    """Recompute each layer in the backward pass, and no longer afterwards: other tests share the backbone."""
    switches = [m for m in backbone.modules() if hasattr(m, "gradient_checkpointing")]
    backbone.gradient_checkpointing_enable({"use_reentrant": False})
    backbone.enable_input_require_grads()
    assert all(m.gradient_checkpointing for m in switches)
    try:
        yield
    finally:
        backbone.gradient_checkpointing_disable()
        backbone.disable_input_require_grads()
        assert not any(m.gradient_checkpointing for m in switches)


def loss_of(vectors):
    """Contrast each text with the next one: every vector takes part in every term."""
    logits = vectors @ vectors.roll(1, 0).T / 0.1
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(vectors)))


def of(encoder):
    return {n: p.grad for n, p in encoder.named_parameters() if p.grad is not None}


def gradients(work):
    loss = work.backward(work.tokenizer.pairs(TEXTS), loss_of, STEP)
    return loss.item(), of(work.encoder)


def assert_equal(one, other, tolerance=EQUAL):
    """Every parameter has a gradient, none is zero throughout, and both are the same."""
    assert one[0] == pytest.approx(other[0], rel=1e-5)
    assert one[1].keys() == other[1].keys()
    scale = max(g.abs().max() for g in one[1].values())
    assert scale > 1e-3
    for name, g in one[1].items():
        assert (g - other[1][name]).abs().max() <= tolerance * scale, name


@pytest.fixture(scope="module")
def direct(cell):
    """Loss and gradients of a cell with the graphs of all chunks kept: the reference, computed once."""

    def once(pooler, attn, precision="fp32", kernel="auto"):
        changes = {"precision": precision, "model.attn_implementation": kernel}
        return gradients(work_on(cell(pooler, attn, changes), DIRECT))

    return cache(once)


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
def test_everything_trained_and_nothing_else_has_a_gradient(cell, direct, pooler, attn):
    _, grads = direct(pooler, attn)
    encoder, _ = shared_adapted(cell(pooler, attn))
    assert grads.keys() == {n for n, p in encoder.named_parameters() if p.requires_grad and is_read(encoder, n)}
    assert all("lora_" in n or n.startswith("pooler.") for n in grads)
    dead = {n for n, g in grads.items() if not g.any()}
    assert not dead, "a gradient that is zero proves nothing below"


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
@pytest.mark.parametrize(
    "how",
    [("fp32", CACHED, False), ("fp32", DIRECT, True), ("mixed", CACHED, True)],
    ids=["fp32, GradCache", "fp32, checkpointed", "mixed, GradCache, checkpointed"],
)
def test_gradcache_and_checkpointing_with_dropout(cell, direct, pooler, attn, how):
    """The same chunks and the same masks: even in bf16 the roundings are the same, so one tolerance serves both."""
    precision, plan, checkpointing = how
    cfg = cell(pooler, attn, {"precision": precision})
    reference, work = direct(pooler, attn, precision=precision), work_on(cfg, plan)
    with checkpointed(work.encoder.backbone) if checkpointing else nullcontext():
        assert_equal(reference, gradients(work))


@pytest.mark.parametrize(("pooler", "attn"), CONTRACT)
def test_any_chunks_equal_one_padded_batch_by_plain_autograd(cell, pooler, attn):
    """The reference shares no code with LargeBatch: one forward of everything, loss.backward().

    Without dropout: other chunks are other shapes, for which other masks are drawn.
    """
    cfg = cell(pooler, attn, {"lora.dropout": 0.0})
    work = work_on(cfg, DIRECT)
    loss = loss_of(work.encoder(work.tokenizer.batch(work.tokenizer.pairs(TEXTS))))
    loss.backward()
    plain = loss.item(), of(work.encoder)
    for plan in (ChunkPlan(4096, 2, gradcache=True), ChunkPlan(20, None, gradcache=False)):
        assert_equal(plain, gradients(work_on(cfg, plan)))


def _process(rank, size, port, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    configs = json.loads((folder / "configs.json").read_text())
    found = [gradients(work_on(cfg, CACHED)) for cfg in configs]  # of three chunks the last of four processes has none
    if rank == size - 1:
        torch.save(found, folder / "gradients.pt")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def by_processes(folder, size):
    """Write loss and gradients of each of configs.json, by forks of this process, which builds the encoders."""
    torch.set_num_threads(1)  # a fork has no other threads than the one that forks
    for cfg in json.loads((Path(folder) / "configs.json").read_text()):
        shared_adapted(cfg)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.start_processes(_process, args=(size, port, Path(folder)), nprocs=size, start_method="fork")


# Processes, kernel, and every how many cells; `auto` lays the texts of these cells out without padding.
SEVERAL = {"two": (2, "auto", 1), "four, padded": (4, "eager", 2)}


@pytest.mark.slow
@pytest.mark.parametrize("how", SEVERAL.values(), ids=SEVERAL)
def test_one_process_or_several_with_dropout(direct, cell, tmp_path, how):
    """All cells in one test, since each worker of pytest would start the processes again."""
    size, kernel, stride = how
    configs = [cell(*c, {"model.attn_implementation": kernel}) for c in CONTRACT[::stride]]
    (tmp_path / "configs.json").write_text(json.dumps(configs))
    done = start("-c", f"from {__name__} import by_processes; by_processes({str(tmp_path)!r}, {size})")
    assert done.returncode == 0, done.stderr
    found = torch.load(tmp_path / "gradients.pt")
    for (pooler, attn), (loss, grads) in zip(CONTRACT[::stride], found, strict=True):
        moved = {n: g for n, g in grads.items() if g.any()}  # zero where none is read
        assert_equal(direct(pooler, attn, kernel=kernel), (loss, moved))


def test_dropout_is_on_and_is_drawn_from_the_step_alone(cell):
    work = work_on(cell("mean", "bi"), CACHED)
    rows = work.tokenizer.pairs(TEXTS)
    first, again, later = (work.backward(rows, loss_of, step).item() for step in (STEP, STEP, STEP + 1))
    assert first == again
    assert first != later
