"""What is read of routers must be logits: a version of transformers that hands out their softmax is refused."""

import pytest
import torch
from torch.nn import functional as F
from transformers import AutoConfig, AutoModel
from transformers.models.olmoe import modeling_olmoe

from cli.errors import UserError
from encoders.loading import build_encoder
from encoders.precision import PRECISIONS
from tests.encoders.test_routers import DEEPSEEK, FAMILIES
from tests.families import SIZES


def build(compose_cell, precision):
    cfg = compose_cell("moee", "bi", "pooler.reading=routing", f"precision={precision}")
    return build_encoder(cfg, PRECISIONS[precision], torch.device("cpu"))


def softmax_first(forward):
    """As the routers of transformers 5.2: probabilities stand where later versions have logits."""

    def changed(self, hidden):
        logits, *rest = forward(self, hidden)
        return F.softmax(logits, dtype=torch.float, dim=-1), *rest

    return changed


REFUSED = "do not weigh experts by a softmax of their logits"


@pytest.fixture(params=[softmax_first, lambda f: lambda self, h: (2 * f(self, h)[0], *f(self, h)[1:])])
def changed_router(request, monkeypatch):
    kind = modeling_olmoe.OlmoeTopKRouter
    monkeypatch.setattr(kind, "forward", request.param(kind.forward))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.usefixtures("changed_router")
def test_another_thing_is_refused(compose_cell, precision):
    with pytest.raises(UserError, match=rf"MoE layers 0, 1, 2\) {REFUSED}"):
        build(compose_cell, precision)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("family", [*FAMILIES, "deepseek_v3", "dots1"])
def test_routers_that_are_sigmoids_are_refused(compose_cell, tmp_path, small_model, family, norm):
    """The softmax of a sigmoid router's logits is nothing that the decoder computes; hidden states may be read."""
    torch.manual_seed(0)
    settings = {**SIZES, **FAMILIES.get(family, DEEPSEEK), "norm_topk_prob": norm}
    settings |= {"num_key_value_heads": 4} if family == "dots1" else {}
    AutoModel.from_config(AutoConfig.for_model(family, **settings)).save_pretrained(tmp_path)
    words = [f"model.path={tmp_path}", "model.attn_implementation=eager"]
    reads = compose_cell("moee", "bi", "pooler.reading=routing", *words)
    if family in ("glm4_moe", "deepseek_v3", "dots1"):
        with pytest.raises(UserError, match=REFUSED):
            build_encoder(reads, PRECISIONS["fp32"], torch.device("cpu"))
    else:
        for precision in PRECISIONS.values():
            build_encoder(reads, precision, torch.device("cpu"))
    build_encoder(compose_cell("mean", "bi", *words), PRECISIONS["fp32"], torch.device("cpu"))
