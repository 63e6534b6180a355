"""States without padding reduce to what padded ones do."""

import pytest
import torch

from poolers.mean import Mean
from poolers.shared.base import EOS, INSTRUCTION, PAD, TEXT, TokenView, weighted_mean
from poolers.shared.packed import Packed


@pytest.fixture(params=["left", "right"])
def both(request):
    lengths, width = (4, 1, 3), 5
    roles = torch.full((3, width), PAD)
    for i, n in enumerate(lengths):
        own = torch.tensor([INSTRUCTION, *[TEXT] * (n - 2), EOS][-n:])
        roles[i, slice(width - n, width) if request.param == "left" else slice(0, n)] = own
    real = roles != PAD
    hidden = torch.randn(3, width, 6, generator=torch.Generator().manual_seed(0))
    padded = hidden.clone().requires_grad_()
    row = hidden[real].clone().requires_grad_()
    return TokenView(roles), padded, row, Packed(row, real.flatten().nonzero().squeeze(1), (3, width))


def test_ends_and_means_with_gradients(both):
    tokens, padded, row, packed = both
    weights = tokens.pooled(with_instruction=False).cumsum(dim=1) * tokens.pooled(with_instruction=False)
    pooler = Mean(padded.shape[-1], 1)
    pairs = [
        (pooler.last_token(padded, tokens), pooler.last_token(packed, tokens)),
        (pooler.first_token(padded, tokens), pooler.first_token(packed, tokens)),
        (weighted_mean(padded, tokens.real), weighted_mean(packed, tokens.real)),
        (weighted_mean(padded, weights), weighted_mean(packed, weights)),
    ]
    for one, other in pairs:
        assert torch.allclose(one, other, atol=1e-6)
    (sum((one * k).sum() for k, (one, _) in enumerate(pairs, 1))).backward()
    (sum((other * k).sum() for k, (_, other) in enumerate(pairs, 1))).backward()
    assert torch.allclose(padded.grad[tokens.real], row.grad, atol=1e-6)
    assert not padded.grad[~tokens.real].any()


def test_a_state_of_weight_zero_reaches_no_mean_and_a_row_without_weight_has_none(both):
    tokens, _, _, packed = both
    weights = tokens.real.float()
    weights[1] = 0.0  # the text of one token
    first = tokens.first()[0]
    weights[0, first] = 0.0
    odd = packed.states.detach().clone()
    odd[0] = torch.nan
    hidden = torch.zeros(3, 5, 6)
    hidden[tokens.real] = odd
    one, other = weighted_mean(hidden, weights), weighted_mean(Packed(odd, packed.places, packed.shape), weights)
    assert torch.allclose(one, other, atol=1e-6, equal_nan=True)
    assert other.isnan().all(dim=1).tolist() == [False, True, False]
