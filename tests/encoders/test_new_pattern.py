"""Patterns that are neither causal nor bidirectional: literal masks against the states, in every kernel."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from transformers import AutoTokenizer

from cli.errors import UserError
from cli.limits import Limit
from encoders.attention.pattern import Pattern, earlier, pattern_of, whole_text
from encoders.attention.probe import probe, visible, visible_in_layers
from encoders.attention.switch import attention_of, parts, set_attention
from encoders.backbone import load_backbone
from encoders.encoder import Encoder
from encoders.tokens import TextTokenizer
from tests.contract.conftest import TEXTS

KERNELS = ["eager", "sdpa", "unpadded"]


def bi_last(layers):
    return pattern_of({"name": "bi_last", "layers": layers})


@dataclass(frozen=True)
class Near:
    """What a token sees: itself and `before - 1` tokens before it."""

    before: int

    def __call__(self, queries, keys):
        return (keys <= queries) & (queries - keys < self.before)


@dataclass(frozen=True)
class Window(Pattern):
    """A causal window in the lower layers, the whole text in the last: three kinds of layer with `middle` causal."""

    window: int
    middle: bool = False
    limits: ClassVar[Mapping[str, Limit]] = {"window": Limit(1)}

    def of_layer(self, layer, layers):
        if layer == layers - 1:
            return whole_text
        return earlier if self.middle and layer == 1 else Near(self.window)


PATTERNS = [Window(2), Window(3, middle=True), bi_last(1), bi_last(2)]


def literal(pattern, layer, layers, n):
    """[n, n] bool, written out token by token."""
    kinds = {"near": lambda q, k: k <= q < k + pattern.window, "all": lambda q, k: True, "causal": lambda q, k: k <= q}
    if pattern.name == "bi_last":
        kind = "all" if layer >= layers - pattern.layers else "causal"
    else:
        kind = "all" if layer == layers - 1 else "causal" if pattern.middle and layer == 1 else "near"
    return torch.tensor([[kinds[kind](q, k) for k in range(n)] for q in range(n)])


@pytest.fixture
def backbone(compose_cell):
    def load(kernel="eager", dtype=torch.float32):
        return load_backbone(compose_cell("mean", "bi", f"model.attn_implementation={kernel}")["model"], dtype)

    return load


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_each_layer_sees_what_the_pattern_says(backbone, pattern, kernel, dtype):
    decoder = backbone(kernel, dtype)
    set_attention(decoder, pattern)
    assert attention_of(decoder) is pattern
    wanted = torch.stack([literal(pattern, layer, 3, 6) for layer in range(3)])
    assert torch.equal(visible_in_layers(decoder), wanted)
    probe(decoder, pattern, longest=40)
    for other in (*(p for p in PATTERNS if p != pattern), Window(4), pattern_of({"name": "causal"})):
        with pytest.raises(UserError, match="does not hold"):
            probe(decoder, other, longest=40)
    set_attention(decoder, pattern_of({"name": "causal"}))
    probe(decoder, pattern_of({"name": "causal"}))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@torch.no_grad()
def test_states_of_a_padded_batch_are_those_of_literal_masks(backbone, small_model, pattern, kernel, side):
    by_hand, decoder = backbone(), backbone(kernel)
    set_attention(decoder, pattern)
    tokenizer = TextTokenizer(AutoTokenizer.from_pretrained(small_model), 128, side)
    rows = tokenizer(TEXTS)
    batch = tokenizer.batch(rows)
    encoder = Encoder(decoder, torch.nn.Identity(), True, torch.float32).eval()
    states = encoder.each_layer(batch, range(3), lambda _, hidden: hidden)
    layers, norm = parts(by_hand)
    for b, row in enumerate(rows):
        hidden, positions = by_hand.get_input_embeddings()(torch.tensor([row.ids])), torch.arange(len(row))[None]
        rotary = by_hand.rotary_emb(hidden, positions)
        for number, layer in enumerate(layers):
            mask = torch.zeros(1, 1, len(row), len(row)).masked_fill(~literal(pattern, number, 3, len(row)), -torch.inf)
            hidden = layer(hidden, attention_mask=mask, position_embeddings=rotary, position_ids=positions)
            wanted = norm(hidden)[0] if number == 2 else hidden[0]
            assert (states[number][b][batch.view.real[b]] - wanted).abs().max() < 5e-6 * wanted.abs().max()


def test_gradients_of_rows_without_padding_are_those_of_padded_texts(backbone, small_model):
    gradients = []
    for kernel in KERNELS:
        decoder = backbone(kernel).requires_grad_(True)
        set_attention(decoder, Window(2))
        tokenizer = TextTokenizer(AutoTokenizer.from_pretrained(small_model), 128)
        batch = tokenizer.batch(tokenizer(TEXTS))
        states = Encoder(decoder, torch.nn.Identity(), True, torch.float32).run_backbone(batch)
        states[batch.view.real].square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in decoder.parameters()]))
    for other in gradients[1:]:
        assert (other - gradients[0]).abs().max() < 1e-5 * gradients[0].abs().max()


def test_what_a_pattern_refuses(backbone):
    decoder = backbone()
    decoder.config._attn_implementation = "flash_attention_2"
    with pytest.raises(UserError, match=r"attn.window=2 attn.middle=False is neither causal nor bidirectional"):
        set_attention(decoder, Window(2))
    with pytest.raises(UserError, match=r"There is no attention pattern 'causl'\. .*causal"):
        pattern_of({"name": "causl"})
    with pytest.raises(UserError, match=r"attn=bi_last has the settings \['layers'\], not \['layer'\]"):
        pattern_of({"name": "bi_last", "layer": 1})
    with pytest.raises(UserError, match=r"attn.layers=0 must be a whole number, at least 1"):
        pattern_of({"name": "bi_last", "layers": 0})


def test_a_switch_that_was_lost_is_refused(backbone):
    decoder = backbone("sdpa")
    set_attention(decoder, bi_last(2))
    middle = deepcopy(decoder)
    probe(middle, bi_last(2))
    parts(middle)[0][1].self_attn.mask_fn = earlier
    assert visible(middle).all(), "the last layer's states alone do not show it"
    with pytest.raises(UserError, match="15 do not see what they must"):
        probe(middle, bi_last(2))
    with pytest.raises(UserError, match=r"attn\.layers=4 is more than the 3 layers"):
        set_attention(decoder, bi_last(4))
