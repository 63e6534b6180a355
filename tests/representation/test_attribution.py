"""Attention by layer and by class of token: against literal loops, the head's own forward, and single texts."""

import math

import numpy as np
import pytest
import torch

from cli.compose import composed, plain
from poolers.shared.base import EOS, INSTRUCTION, PAD, TEXT, TokenView
from poolers.shared.registry import build_pooler
from representation import encoders_studied
from representation.attribution import attention_weights, attributed, layer_attention, section
from representation.encoders_studied import read_encoders
from representation.token_classes import CLASSES, TokenClasses, relative_entropy

D, L, B, T = 12, 5, 3, 7
ROLES = torch.tensor(
    [[INSTRUCTION, TEXT, TEXT, TEXT, TEXT, TEXT, EOS], [TEXT, TEXT, EOS, PAD, PAD, PAD, PAD], [TEXT] * 6 + [EOS]]
)


def pooler(name, *words):
    cfg = plain(composed("train", [f"pooler={name}", "attn=bi", "pooler.num_heads=3", "pooler.head_dim=4", *words]))
    built = build_pooler(cfg["pooler"], D, L, seed=0)
    with torch.no_grad():
        for parameter in built.parameters():  # away from the start, where attention is nearly even
            parameter.add_(0.5 * torch.randn_like(parameter))
    return built.eval()


def literal(head, keys):
    """[H, N, K] of the keys [K, D] that exist, number by number."""
    queries = [head.query(head.norm_queries(q)) for q in head.queries]
    made = [head.key(head.norm_keys(k)) for k in keys]
    d = head.head_dim
    rows = []
    for h in range(head.num_heads):
        part = slice(h * d, (h + 1) * d)
        for q in queries:
            scores = [math.exp(float(q[part] @ k[part]) / math.sqrt(d)) for k in made]
            rows.append([s / sum(scores) for s in scores])
    return torch.tensor(rows).view(head.num_heads, len(queries), len(keys))


@pytest.fixture
def heads(representation_words):
    """Encoders with heads over layers and over tokens."""
    found = {}
    over_layers, over_tokens = ["pooler=multilayer"], ["pooler=lastlayer"]
    for words in (over_layers, over_tokens, [*over_tokens, "reference_fault.lastlayer_tokens=mean"]):
        (found[" ".join(words)],) = read_encoders(plain(composed("representation", [*representation_words, *words])))
    yield found
    encoders_studied._loaded.clear()  # what `loaded` has moved


def loaded(studied):
    """The encoder, loaded anew, its head moved away from its even start."""
    encoders_studied._loaded.clear()
    encoder = studied.encoder()
    torch.manual_seed(0)
    for parameter in encoder.encoder.pooler.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return encoder


def test_layers_of_each_text_alone(heads, texts):
    studied, wanted = heads["pooler=multilayer"], texts.every[:9]
    encoder = loaded(studied)
    found = attributed(studied, texts, wanted)
    pooler = encoder.encoder.pooler
    assert found.names == ["0", "1", "2"]
    for i, text in enumerate(wanted):
        batch = encoder.tokenizer.batch(encoder.tokenizer([text.text]))
        with torch.inference_mode():
            keys = torch.stack([s[0] for s in encoder.encoder.states(batch)]) + pooler.layer_weights
            weights = attention_weights(pooler.head, keys[None])[0].double()
        np.testing.assert_allclose(found.attention[i], weights.mean(dim=(0, 1)), atol=1e-5)
        entropy = [-sum(float(w * w.log()) for w in row) / np.log(3) for head in weights for row in head]
        assert found.entropy[i] == pytest.approx(np.mean(entropy), abs=1e-5)
    assert np.ptp(found.attention) > 0.01


def test_tokens_of_each_text_alone(heads, texts):
    studied, wanted = heads["pooler=lastlayer"], texts.every[:9]
    encoder = loaded(studied)
    found = attributed(studied, texts, wanted)
    for i, text in enumerate(wanted):
        batch = encoder.tokenizer.batch(encoder.tokenizer([text.text]))
        kinds = TokenClasses(encoder.tokenizer.tokenizer)(batch)[0]
        with torch.inference_mode():
            states = encoder.encoder.states(batch)
            weights = attention_weights(encoder.encoder.pooler.head, states).mean(dim=(1, 2))[0]
        for c in range(len(CLASSES)):
            assert found.attention[i, c] == pytest.approx(float(weights[kinds == c].sum()), abs=1e-5)
            assert found.even[i, c] == pytest.approx(float((kinds == c).float().mean()), abs=1e-6)
    np.testing.assert_allclose(found.attention.sum(axis=1), 1, atol=1e-5)


def test_the_answer_has_heads_over_several_keys_alone(heads, texts, settings):
    found = section(list(heads.values()), texts, settings)
    assert [table.name for table in found.tables] == ["attribution_layers", "attribution_tokens"]
    assert [drawing.name for drawing in found.draw()] == ["attribution_layers", "attribution_tokens"]
    frame = found.frames["attribution"]
    np.testing.assert_allclose(frame.groupby(["encoder", "type"])["attention"].sum(), 1, atol=1e-5)
    assert len(frame) == len(texts.of_type) * (3 + len(CLASSES))
    (eos,) = read_encoders(plain(composed("representation", ["pooler=eos", "run=null"])))
    assert section([eos], texts, settings) is None


@torch.no_grad()
def test_weights_are_those_of_a_literal_loop():
    head, states = pooler("lastlayer").head, torch.randn(B, T, D)
    mask = ROLES != PAD
    weights = attention_weights(head, states, mask)
    for b in range(B):
        kept = mask[b]
        assert torch.allclose(weights[b][..., kept], literal(head, states[b, kept]), atol=1e-5)
        assert torch.equal(weights[b][..., ~kept], torch.zeros_like(weights[b][..., ~kept]))


@torch.no_grad()
@pytest.mark.parametrize("query", ["fixed", "instruction"])
def test_values_under_these_weights_are_what_the_head_gives(query):
    """The forward pass of the head, finished from our weights, is its own."""
    head, states, mask = pooler("lastlayer", f"pooler.query={query}").head, torch.randn(B, T, D), ROLES != PAD
    asked = torch.randn(B, 1, D) if query == "instruction" else None
    values = head.value(head.norm_keys(states)).unflatten(-1, (head.num_heads, head.head_dim)).transpose(1, 2)
    attended = attention_weights(head, states, mask, asked) @ values
    assert torch.allclose(head.finish(attended), head(states, mask, asked), atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("layers", ["all", "every:2"])
def test_layers_are_keys_of_a_multilayer_head(weighted, layers):
    own = pooler("multilayer", f"pooler.layer_weights={weighted}", f"pooler.layers='{layers}'", "pooler.tokens=mean")
    states = [torch.randn(B, D) for _ in own.layers]
    weights = layer_attention(own, states)
    assert weights.shape == (B, 3, len(own.head.queries), len(own.layers))
    for b in range(B):
        keys = torch.stack([s[b] for s in states])
        assert torch.allclose(weights[b], literal(own.head, keys + own.layer_weights if weighted else keys), atol=1e-5)


@torch.no_grad()
def test_a_layer_of_many_tokens_has_the_attention_of_all_of_them():
    own, view = pooler("multilayer", "pooler.tokens=all"), TokenView(ROLES)
    hidden = torch.randn(L, B, T, D)
    weights = layer_attention(own, [own.reduce(i, hidden[i], view) for i in range(L)])
    pooled = own.pooled(view)
    for b in range(B):
        keys = torch.cat([hidden[i, b, pooled[b]] + own.layer_weights[i] for i in range(L)])
        each = literal(own.head, keys).unflatten(-1, (L, int(pooled[b].sum())))
        assert torch.allclose(weights[b], each.sum(dim=-1), atol=1e-5)


def test_entropy_is_one_where_even_and_zero_on_one_key():
    rows = torch.tensor([[0.25, 0.25, 0.25, 0.25], [1.0, 0, 0, 0], [0.5, 0.5, 0, 0]])
    assert torch.allclose(relative_entropy(rows, 4), torch.tensor([1.0, 0.0, 0.5], dtype=torch.float64))
    assert float(relative_entropy(rows[2], torch.tensor(2))) == pytest.approx(1)
    assert float(relative_entropy(rows[1], 1)) == 1
