"""Means by position against literal loops over texts and tokens."""

import math

import pandas as pd
import pytest
import torch

from representation.figures import tables_of
from representation.probes.causal_against_bi import PositionMeans, bin_names, bin_starts


def test_bins_double():
    assert bin_starts(1) == [0]
    assert bin_starts(9) == [0, 1, 2, 4, 8]
    assert bin_names(bin_starts(9), 9) == ["0", "1", "2-3", "4-7", "8"]
    assert bin_names(bin_starts(64), 64)[-1] == "32-63"
    assert bin_names(bin_starts(1), 1) == ["0"]
    assert bin_names(bin_starts(64), 6) == ["0", "1", "2-3", "4-5"]


def test_means_are_over_the_tokens_of_a_text_and_then_over_texts():
    generator = torch.Generator().manual_seed(0)
    starts, lengths = bin_starts(20), [20, 3, 7, 1, 12]
    seen = PositionMeans(2, starts)
    each = [torch.rand(2, n, generator=generator) for n in lengths]
    for chunk in ([0, 1], [2, 3, 4]):  # in two batches, padded on the left and on the right
        width = max(lengths[i] for i in chunk)
        values = torch.full((2, len(chunk), width), math.nan)
        positions, real = torch.zeros(len(chunk), width, dtype=torch.long), torch.zeros(len(chunk), width).bool()
        for row, i in enumerate(chunk):
            n = lengths[i]
            where = slice(width - n, width) if row % 2 else slice(0, n)
            values[:, row, where], positions[row, where], real[row, where] = each[i], torch.arange(n), True
        seen.add(values, positions, real)
    for b, start in enumerate(starts):
        end = starts[b + 1] if b + 1 < len(starts) else 10**9
        of_texts = [v[:, start:end].double().mean(dim=1) for v in each if v.shape[1] > start]
        assert torch.allclose(seen.means[:, b], torch.stack(of_texts).mean(dim=0))
        assert int(seen.texts[b]) == len(of_texts)
        assert int(seen.tokens[b]) == sum(v[0, start:end].numel() for v in each)
    assert torch.allclose(seen.whole, torch.stack([v.double().mean(dim=1) for v in each]).mean(dim=0))
    assert seen.longest == 20


def test_seeds_are_averaged():
    found = []
    for value in (0.2, 0.6):
        found.append(PositionMeans(1, [0, 1]))
        found[-1].add(
            torch.full((1, 2, 2), value), torch.tensor([[0, 1], [0, 1]]), torch.tensor([[1, 1], [1, 0]]).bool()
        )
    rows = [{"encoder": "mean-bi", "seed": i, **row} for i, seen in enumerate(found) for row in seen.rows()]
    (means,) = tables_of(pd.DataFrame(rows), "layer", "positions", "cosine").values()
    assert means.loc[1, ["0", "1", "all"]].tolist() == pytest.approx([0.4, 0.4, 0.4])
    assert [(row["positions"], row["texts"]) for row in found[0].rows()] == [("0", 2), ("1", 1), ("all", 2)]


def test_a_bin_that_no_text_reaches_has_no_mean():
    seen = PositionMeans(1, [0, 1])
    seen.add(torch.ones(1, 1, 1), torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 1).bool())
    assert float(seen.means[0, 0]) == 1
    assert math.isnan(float(seen.means[0, 1]))
