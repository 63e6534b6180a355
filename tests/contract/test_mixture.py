"""Experts and their router, by the same contract: no batch, padding, kernel, chunk or process moves a vector."""

import json

import pytest
import torch

from encoders.loading import build_tokenizer
from tests.contract.conftest import FLOAT32, TEXTS, apart, embed, shared_adapted
from tests.contract.test_embeddings import KINDS, arranged
from tests.contract.test_gradients import CACHED, DIRECT, assert_equal, gradients, loss_of, of, work_on
from tests.contract.test_gradients import TEXTS as PAIRS
from tests.started import start
from training.large_batch import ChunkPlan

MIXSE = {"name": "mixse", "experts": 3, "top_k": 1, "router": "shared", "trains": "router", "lr": None}
ROUTED = {**MIXSE, "always": False, "balance": 0.0}
JOINT = {**MIXSE, "top_k": 2, "router": "layer", "trains": "experts", "always": True, "experts": 4, "balance": 0.5}
CELLS = [("mean", "bi", ROUTED), ("lastlayer", "causal", JOINT)]


@pytest.fixture
def mixed(cell):
    return lambda pooler, attn, adapter, **more: cell(pooler, attn, {"adapter": adapter, **more})


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("which", CELLS, ids=["routed", "joint"])
def test_alone_or_in_any_batch_on_any_kernel(mixed, which, kernel):
    cfg = mixed(*which, **{"model.attn_implementation": kernel})
    encoder, tokenizer = shared_adapted(cfg)[0].eval(), build_tokenizer(cfg, 128)
    alone = torch.cat([embed(encoder, tokenizer, [t]) for t in TEXTS])
    moved = {name: apart(vectors, alone) for name, vectors in arranged(encoder, tokenizer)}
    assert max(moved.values()) < FLOAT32, moved
    weights = [s.weights for s in encoder.backbone.mixture.sublayers]
    assert all((w > 0).sum(dim=-1).eq(which[2]["top_k"] + which[2]["always"]).all() for w in weights)
    assert len({tuple(row) for w in weights for row in (w > 0).flatten(0, -2).tolist()}) > 1, "one choice for all"


@pytest.mark.parametrize("which", CELLS, ids=["routed", "joint"])
def test_chunks_gradcache_and_kernels_give_the_gradient_of_one_batch(mixed, which):
    """Of one padded batch by plain autograd too, where no balance is asked for."""
    cfg = mixed(*which, **{"lora.dropout": 0.0})
    whole = gradients(work_on(cfg, ChunkPlan(4096, None, gradcache=False)))
    assert whole[1]["backbone.mixture.router"].any()
    assert any("lora_" in name for name in whole[1]) == (which[2] is JOINT)
    unpadded = mixed(*which, **{"lora.dropout": 0.0, "model.attn_implementation": "unpadded"})
    for config, plan in ((cfg, ChunkPlan(4096, 2, gradcache=True)), (unpadded, ChunkPlan(20, None, gradcache=False))):
        assert_equal(whole, gradients(work_on(config, plan)))
    if not which[2]["balance"]:
        work = work_on(cfg, DIRECT)
        loss = loss_of(work.encoder(work.tokenizer.batch(work.tokenizer.pairs(PAIRS))))
        loss.backward()
        assert_equal((loss.item(), of(work.encoder)), whole)


@pytest.mark.slow
def test_one_process_or_two_with_dropout(mixed, tmp_path):
    configs = [mixed(*which) for which in CELLS]
    (tmp_path / "configs.json").write_text(json.dumps(configs))
    code = f"from tests.contract.test_gradients import by_processes; by_processes({str(tmp_path)!r}, 2)"
    done = start("-c", code)
    assert done.returncode == 0, done.stderr
    found = torch.load(tmp_path / "gradients.pt")
    for i, cfg in enumerate(configs):
        direct = gradients(work_on(cfg, DIRECT))
        assert_equal(direct, found[i])
        assert_equal(direct, gradients(work_on(cfg, CACHED)))
