"""Masks of dropout: their share, their independence, their seed."""

import pytest
import torch

from encoders.dropout import draw_kept


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_share_and_independence(p, dtype):
    torch.manual_seed(0)
    kept = draw_kept(torch.ones(1000, 1000, dtype=dtype), p)
    assert kept.dtype is dtype
    assert sorted(kept.unique().tolist()) == [0, 1]
    kept = kept.double()
    assert float(kept.mean()) == pytest.approx(1 - p, abs=4 * (p * (1 - p) / 1e6) ** 0.5)
    for apart in (1, 4, 1000):
        flat = kept.flatten()
        assert float((flat[apart:] * flat[:-apart]).mean()) == pytest.approx((1 - p) ** 2, abs=0.003)


def test_the_seed_decides_and_each_draw_is_another():
    x = torch.randn(63, 7)  # no multiple of the numbers in a word
    torch.manual_seed(1)
    one, other = draw_kept(x, 0.3), draw_kept(x, 0.3)
    torch.manual_seed(1)
    assert torch.equal(draw_kept(x, 0.3), one)
    assert not torch.equal(one, other)
