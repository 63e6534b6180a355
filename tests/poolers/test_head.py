"""Sizes, starts and settings of the trainable heads, against written-out counts and literal expressions."""

import pytest
import torch

from cli.compose import composed, plain
from cli.errors import UserError
from poolers.multilayer import chosen_layers
from poolers.shared.base import TEXT, TokenView
from poolers.shared.cross_attention import CrossAttentionHead
from poolers.shared.registry import build_pooler

D, L = 32, 6


def pooler(name, *words, attn="bi"):
    cfg = plain(composed("train", [f"pooler={name}", f"attn={attn}", *words]))["pooler"]
    return build_pooler(cfg, D, L, seed=0)


def count(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    "words", [["lastlayer"], ["multilayer"], ["linear"], ["multilayer", "pooler.query=instruction"]]
)
@pytest.mark.parametrize("wanted", [20_000, 50_001])
def test_matched_heads_have_one_size(words, wanted):
    assert abs(count(pooler(*words, f"pooler.match_params={wanted}")) - wanted) <= 1.5 * D + 1


def test_a_match_that_cannot_be_is_refused():
    with pytest.raises(UserError, match="match_params leaves 100 parameters for the head, which has at least"):
        pooler("lastlayer", "pooler.match_params=100")
    with pytest.raises(UserError, match="matched by its MLP"):
        pooler("lastlayer", "pooler.match_params=50000", "pooler.mlp=false")


def test_a_matched_linear_head_stays_linear():
    head, view = pooler("linear", "pooler.match_params=5000"), TokenView(torch.full((1, 1), TEXT))
    a, b = torch.randn(2, 1, 1, D)
    assert torch.allclose(head(a + 2 * b, view), head(a, view) + 2 * head(b, view), atol=1e-5)


def test_the_published_head_has_its_published_size_and_keeps_its_proportions():
    head = plain(composed("train", ["pooler=lastlayer", "reference_fault=large_head"]))["pooler"]
    with torch.device("meta"):
        published = count(build_pooler(head, 4096, 32, seed=0))
    assert published == pytest.approx(1.278e9, rel=1e-3)
    small = build_pooler(head, 256, 6, seed=0).head
    assert (len(small.queries), small.num_heads, small.head_dim) == (48, 32, 128)


def test_a_head_that_is_not_trained_has_no_gradient_but_the_same_start():
    still, moving = pooler("multilayer", "pooler.trainable=false"), pooler("multilayer")
    assert not any(p.requires_grad for p in still.parameters())
    assert all(torch.equal(a, b) for a, b in zip(still.parameters(), moving.parameters(), strict=True))


@pytest.mark.parametrize(
    "words",
    [["pooler.mlp=false"], ["pooler.layer_weights=false"], ["pooler.layers='last:2'"], ["pooler.query=instruction"]],
)
def test_a_part_more_or_less_moves_no_other_parts_start(words):
    whole, less = (dict(pooler("multilayer", *w).named_parameters()) for w in ([], words))
    shared = [k for k in less if k in whole and less[k].shape == whole[k].shape]
    assert len(shared) >= 6
    assert all(torch.equal(less[k], whole[k]) for k in shared)


@pytest.mark.parametrize(
    ("layers", "chosen"),
    [("all", [0, 1, 2, 3, 4, 5]), ("last:2", [4, 5]), ("last:6", [0, 1, 2, 3, 4, 5]), ("every:2", [1, 3, 5])],
)
def test_chosen_layers(layers, chosen):
    assert chosen_layers(layers, 6) == chosen


@pytest.mark.parametrize("layers", ["last", "last:0", "last:7", "every:x", "first:2", "3"])
def test_other_layers_are_refused(layers):
    with pytest.raises(UserError, match=r"must be all, last:k or every:k with k from 1 to 6"):
        chosen_layers(layers, 6)


@pytest.mark.parametrize("tokens", ["last", "mean", "all"])
def test_only_the_chosen_layers_reach_the_vector(tokens):
    head = pooler("multilayer", f"pooler.tokens={tokens}", "pooler.layers='every:2'").eval()
    view, hidden = TokenView(torch.full((2, 3), TEXT)), torch.randn(L, 2, 3, D)
    out = head([head.reduce(i, hidden[i], view) for i in head.layers], view)
    assert len(head.layer_weights) == 3
    states = hidden[[1, 3, 5]] if tokens == "all" else hidden[[1, 3, 5]].mean(2, True)
    if tokens == "last":
        states = hidden[[1, 3, 5], :, -1:]
    keys = (states + head.layer_weights[:, None, None]).permute(1, 0, 2, 3).flatten(1, 2)
    assert torch.allclose(out, head.head(keys), atol=1e-5)


def test_queries_are_added_where_the_published_code_adds_them():
    sizes = {"num_queries": 3, "num_heads": 2, "head_dim": 4, "mlp_inner": 0}
    torch.manual_seed(0)
    plain_head = CrossAttentionHead(D, **sizes, query_std=1.0)
    added = CrossAttentionHead(D, **sizes, query_std=1.0, residual=True)
    added.load_state_dict(plain_head.state_dict())
    states = torch.randn(5, 4, D)
    offset = added(states) - plain_head(states)
    assert torch.allclose(offset, plain_head.queries.mean(dim=0).expand(5, D), atol=1e-5)
