"""The quick dropout is dropout: its share, its scale, its gradient, its seed."""

import pytest
import torch

from encoders.dropout import QuickDropout
from encoders.loading import build_encoder
from encoders.lora import add_lora
from encoders.precision import PRECISIONS


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_share_and_scale(p):
    torch.manual_seed(0)
    out = QuickDropout(p)(torch.ones(1000, 1000))
    assert out.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)])
    assert float((out == 0).float().mean()) == pytest.approx(p, abs=4 * (p * (1 - p) / 1e6) ** 0.5)
    assert float((out[:, 1:] * out[:, :-1]).mean()) == pytest.approx(1, abs=0.01), "neighbours are independent"


def test_seed_decides_and_evaluation_passes_through():
    layer, x = QuickDropout(0.3), torch.randn(64, 8)
    torch.manual_seed(1)
    one, other = layer(x), layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), one)
    assert not torch.equal(one, other)
    assert layer.eval()(x) is x


def test_gradient_is_the_mask():
    x = torch.randn(64, 8, requires_grad=True)
    out = QuickDropout(0.3)(x)
    out.sum().backward()
    assert torch.allclose(x.grad * x, out)


def test_every_lora_layer_has_it(compose_cell):
    cfg = compose_cell("eos", "bi")
    encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    kinds = {type(d) for m in encoder.backbone.modules() for d in getattr(m, "lora_dropout", {}).values()}
    assert kinds == {QuickDropout}
