"""Bytes that live at once, on tensors whose sizes are known."""

import torch

from benchmarks.speed.tensor_bytes import LiveBytes


def test_peak_is_what_lives_at_once():
    with LiveBytes() as live:
        a = torch.ones(1000)  # 4,000 bytes
        b = a + 1  # 8,000
        del a
        c = b * 2  # 8,000
        c.view(10, 100)  # no bytes of its own
        c.mul_(3)
        del b, c
        torch.zeros(1500)  # 6,000
    assert live.peak == 8000


def test_what_was_there_before_does_not_count():
    weight = torch.ones(1 << 16)
    with LiveBytes() as live:
        weight[:10].sum()
    assert live.peak == 4
