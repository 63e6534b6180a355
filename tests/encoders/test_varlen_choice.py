"""torch's kernel for texts of any length is used where it runs and holds; elsewhere texts go by groups."""

import pytest
import torch
from torch.nn.attention import varlen
from torch.torch_version import TorchVersion

from encoders.attention.unpadded import kernel_holds

CPU = torch.device("cpu")


@pytest.fixture
def kernel(monkeypatch):
    """A loop over texts by sdpa in the place of the GPU's kernel."""
    kernel_holds.cache_clear()
    yield lambda attend: monkeypatch.setattr(varlen, "varlen_attn", attend)
    kernel_holds.cache_clear()


def loop(query, key, value, cu_seq_q, *_, scale, window_size, enable_gqa=False, num_splits=None):
    parts = []
    for a, b in zip(cu_seq_q[:-1].tolist(), cu_seq_q[1:].tolist(), strict=True):
        q, k, v = (x[a:b].transpose(0, 1) for x in (query, key, value))
        causal = window_size == (-1, 0)
        own = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, scale=scale, enable_gqa=enable_gqa
        )
        parts.append(own.transpose(0, 1))
    return torch.cat(parts)


def blind_to_causality(*args, window_size, enable_gqa, num_splits, **kwargs):
    return loop(*args, window_size=(-1, -1), enable_gqa=enable_gqa, **kwargs)


def absent(*args, scale, window_size, enable_gqa, num_splits):
    raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")


def of_2_11(query, key, value, cu_seq_q, *rest, scale=None, window_size=(-1, -1)):
    return loop(query, key, value, cu_seq_q, *rest, scale=scale, window_size=window_size)


def of_2_12(*args, num_splits=None, **kwargs):
    if num_splits is not None:
        raise RuntimeError(
            "num_splits requires FA3. Register FA3 with `register_flash_attention_fa3()` to set num_splits."
        )
    return loop(*args, **kwargs)


def older(*args, is_causal=False, return_aux=None, scale=None):
    pytest.fail("it knows no window")


@pytest.mark.parametrize(
    ("attend", "holds"),
    [(loop, True), (of_2_11, True), (of_2_12, True), (blind_to_causality, False), (absent, False), (older, False)],
)
def test_it_is_tried_before_it_is_used(kernel, attend, holds, monkeypatch):
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.12.1" if attend is of_2_12 else "2.13.0"))
    kernel(attend)
    assert kernel_holds(CPU, torch.bfloat16, 16) is holds
