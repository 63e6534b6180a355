"""Gradients do not depend on how a batch was computed: GradCache, chunks, processes, checkpointing."""

import pytest
import torch
import torch.multiprocessing as mp

from encoders.loading import build_encoder, build_tokenizer
from encoders.lora import add_lora
from encoders.precision import PRECISIONS
from records.streams import stream_seed
from tests.cells import CELLS
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
EQUAL = 1e-5  # relative to the largest entry; float32 sums in another order


def work_on(cfg, plan, dropout=0.1, checkpointing=False):
    encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu")).train()
    add_lora(encoder.backbone, {**cfg["lora"], "dropout": dropout}, stream_seed(cfg["seed"], "adapter"))
    for name, p in encoder.backbone.named_parameters():
        if "lora_B" in name:  # B starts at zero, which would leave A without gradient
            torch.manual_seed(stream_seed(1, name))
            p.data.normal_(std=0.05)
    if checkpointing:
        encoder.backbone.gradient_checkpointing_enable({"use_reentrant": False})
        encoder.backbone.enable_input_require_grads()
    encoder.train()
    return LargeBatch(encoder, build_tokenizer(cfg, 128), plan, seed=3)


def loss_of(vectors):
    """Contrast each text with the next one: every vector takes part in every term."""
    logits = vectors @ vectors.roll(1, 0).T / 0.1
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(vectors)))


def gradients(work):
    loss = work.backward(work.tokenize(TEXTS), loss_of, step=5)
    return loss, {n: p.grad for n, p in work.encoder.named_parameters() if p.requires_grad and p.grad is not None}


def assert_equal(one, other):
    assert float(one[0]) == pytest.approx(float(other[0]), rel=1e-5)
    assert one[1].keys() == other[1].keys()
    assert len(one[1]) > 0
    scale = max(g.abs().max() for g in one[1].values())
    for name, g in one[1].items():
        assert (g - other[1][name]).abs().max() <= EQUAL * scale, name


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_gradcache_equals_the_graph_of_all_chunks_with_dropout(compose_cell, pooler, attn):
    cfg = compose_cell(pooler, attn)
    direct = gradients(work_on(cfg, ChunkPlan(4096, 3, gradcache=False)))
    cached = gradients(work_on(cfg, ChunkPlan(4096, 3, gradcache=True)))
    assert_equal(direct, cached)


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_gradcache_equals_one_padded_batch_by_plain_autograd(compose_cell, pooler, attn):
    """The reference shares no code with LargeBatch: one forward of everything, loss.backward()."""
    cfg = compose_cell(pooler, attn)
    work = work_on(cfg, ChunkPlan(4096, None, gradcache=False), dropout=0.0)
    loss = loss_of(work.encoder(work.tokenizer.batch(work.tokenize(TEXTS))))
    loss.backward()
    plain = loss.detach(), {n: p.grad for n, p in work.encoder.named_parameters() if p.grad is not None}
    for plan in (ChunkPlan(4096, 2, gradcache=True), ChunkPlan(20, None, gradcache=False)):
        assert_equal(plain, gradients(work_on(cfg, plan, dropout=0.0)))


def test_dropout_is_on_and_depends_on_step_alone(compose_cell):
    cfg = compose_cell("mean", "bi")
    work = work_on(cfg, ChunkPlan(4096, 3, gradcache=True))
    rows = work.tokenize(TEXTS)
    first, again, later = (work.backward(rows, loss_of, step=s).item() for s in (5, 5, 6))
    assert first == again
    assert first != later


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_gradient_checkpointing_changes_nothing(compose_cell, pooler, attn):
    cfg = compose_cell(pooler, attn)
    plan = ChunkPlan(4096, 3, gradcache=True)
    assert_equal(gradients(work_on(cfg, plan)), gradients(work_on(cfg, plan, checkpointing=True)))


def _process(rank, size, port, cfg, queue):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    loss, grads = gradients(work_on(cfg, ChunkPlan(4096, 2, gradcache=True)))
    if rank == size - 1:
        queue.put((loss.item(), {n: g.tolist() for n, g in grads.items()}))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(("pooler", "attn"), [("multilayer", "bi"), ("eos", "causal")])
def test_two_processes_equal_one_with_dropout(compose_cell, pooler, attn):
    cfg = compose_cell(pooler, attn)
    one = gradients(work_on(cfg, ChunkPlan(4096, 2, gradcache=True)))
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    running = mp.spawn(_process, args=(2, _free_port(), cfg, queue), nprocs=2, join=False)
    loss, grads = queue.get()
    running.join()
    assert_equal(one, (torch.tensor(loss), {n: torch.tensor(g) for n, g in grads.items()}))


def _free_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
