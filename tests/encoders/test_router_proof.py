"""What is read of routers must be logits: a version of transformers that hands out their softmax is refused."""

import pytest
import torch
from torch.nn import functional as F
from transformers.models.olmoe import modeling_olmoe

from encoders.load_readings import load_readings
from encoders.loading import build_encoder, loaded
from encoders.precision import PRECISIONS
from encoders.routers import routers
from records.errors import UserError
from tests.contract.conftest import TEXTS


def build(compose_cell, precision):
    cfg = compose_cell("moee", "bi", "pooler.reading=routing", f"precision={precision}")
    return build_encoder(cfg, PRECISIONS[precision], torch.device("cpu"))


@pytest.mark.parametrize("precision", ["fp32", "mixed", "bf16"])
def test_logits_pass(compose_cell, precision):
    encoder = build(compose_cell, precision)
    assert not any(m._forward_hooks for m in encoder.backbone.modules()), "the proof takes its hooks away"
    assert len(routers(encoder.backbone)) == 3


def softmax_first(forward):
    """As the routers of transformers 5.2: probabilities stand where later versions have logits."""

    def changed(self, hidden):
        logits, *rest = forward(self, hidden)
        return F.softmax(logits, dtype=torch.float, dim=-1), *rest

    return changed


@pytest.fixture(params=[softmax_first, lambda f: lambda self, h: (2 * f(self, h)[0], *f(self, h)[1:])])
def changed_router(request, monkeypatch):
    kind = modeling_olmoe.OlmoeTopKRouter
    monkeypatch.setattr(kind, "forward", request.param(kind.forward))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.usefixtures("changed_router")
def test_another_thing_is_refused(compose_cell, precision):
    with pytest.raises(UserError, match=r"MoE layers 0, 1, 2\) do not hand out logits"):
        build(compose_cell, precision)


@pytest.mark.usefixtures("changed_router")
def test_readings_of_a_checkpoint_too(compose_cell, small_moe):
    """A pooler of hidden states runs on; a reading of routers beside it is refused."""
    cfg = compose_cell("mean", "bi", f"model.path={small_moe}")
    routing = compose_cell("moee", "bi", "pooler.reading=routing")["pooler"]
    assert len(loaded(cfg, None)[0].encode(TEXTS)) == len(TEXTS)
    with pytest.raises(UserError, match="do not hand out logits"):
        load_readings(cfg, None, {"moee:routing": routing})
