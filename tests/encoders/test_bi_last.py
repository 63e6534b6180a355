"""The last layers bidirectional, those below causal: against a literal mask of each layer, in every kernel."""

import json
from copy import deepcopy

import pytest
import torch
from transformers import AutoTokenizer

from cli.errors import UserError
from encoders.attention.pattern import earlier, pattern_of
from encoders.attention.probe import probe, sight, sight_of_layers
from encoders.attention.switch import set_attention
from encoders.attention.unpadded import Segments
from encoders.backbone import load_backbone
from encoders.encoder import Encoder
from encoders.frozen.cached_encoder import identity
from encoders.layers import parts
from encoders.precision import PRECISIONS
from encoders.tokens import TextTokenizer
from tests.contract.conftest import TEXTS

KERNELS = ["eager", "sdpa", "unpadded"]
T = 6
CAUSAL, ALL = torch.ones(T, T).tril().bool(), torch.ones(T, T).bool()


def bi_last(layers):
    return pattern_of({"name": "bi_last", "layers": layers})


@pytest.fixture
def backbone(compose_cell):
    def load(kernel="eager", dtype=torch.float32):
        model = compose_cell("mean", "bi_last", f"model.attn_implementation={kernel}")["model"]
        return load_backbone(model, dtype)

    return load


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_each_layer_sees_what_it_must(backbone, kernel, k, dtype):
    decoder = backbone(kernel, dtype)
    set_attention(decoder, bi_last(k))
    assert sight_of_layers(decoder).tolist() == torch.stack([CAUSAL] * (3 - k) + [ALL] * k).tolist()
    assert torch.equal(sight(decoder), ALL)
    probe(decoder, bi_last(k))
    assert not any(m._forward_hooks for m in decoder.modules()), "the probe takes its hooks away"
    for other in {1, 2, 3} - {k}:
        with pytest.raises(UserError, match=f"attn=bi_last attn.layers={other} does not hold"):
            probe(decoder, bi_last(other))
    set_attention(decoder, pattern_of({"name": "causal"}))
    assert torch.equal(sight_of_layers(decoder), torch.stack([CAUSAL] * 3)), "and it can be taken back"
    probe(decoder, pattern_of({"name": "causal"}))


def literal_states(decoder, ids, k):
    """[L, T, D]: every layer called by hand with a mask written out, one text, no padding."""
    layers, norm = parts(decoder)
    hidden = decoder.get_input_embeddings()(ids[None])
    positions = torch.arange(len(ids))[None]
    rotary = decoder.rotary_emb(hidden, positions)
    found = []
    for number, layer in enumerate(layers):
        later = torch.ones(len(ids), len(ids)).triu(1).bool()
        hidden_keys = later if number < len(layers) - k else torch.zeros_like(later)
        mask = torch.zeros(1, 1, len(ids), len(ids)).masked_fill(hidden_keys, -torch.inf)
        hidden = layer(hidden, attention_mask=mask, position_embeddings=rotary, position_ids=positions)
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        found.append(hidden[0])
    return [*found[:-1], norm(found[-1])]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [1, 2])
@torch.no_grad()
def test_states_of_a_padded_batch_are_those_of_literal_masks(backbone, small_model, kernel, side, k):
    by_hand = backbone()  # untouched by the switch
    decoder = backbone(kernel)
    set_attention(decoder, bi_last(k))
    tokenizer = TextTokenizer(AutoTokenizer.from_pretrained(small_model), 128, side)
    batch = tokenizer.batch(tokenizer(TEXTS))
    encoder = Encoder(decoder, torch.nn.Identity(), True, torch.float32).eval()
    states = encoder.each_layer(batch, range(3), lambda _, hidden: hidden)
    for b, row in enumerate(tokenizer(TEXTS)):
        for own, wanted in zip(states, literal_states(by_hand, torch.tensor(row.ids), k), strict=True):
            assert (own[b][batch.view.real[b]] - wanted).abs().max() < 5e-6 * wanted.abs().max()


@pytest.mark.parametrize("kernel", KERNELS)
@torch.no_grad()
def test_all_layers_is_bi(backbone, kernel):
    ids = torch.tensor([[5, 60, 90, 7, 8]])
    last, both = backbone(kernel), backbone(kernel)
    set_attention(last, bi_last(3))
    set_attention(both, pattern_of({"name": "bi"}))
    one, other = (
        m(input_ids=ids, use_cache=False, segments=Segments((5,), ids.device)).last_hidden_state for m in (last, both)
    )
    assert (one - other).abs().max() < 1e-5


def test_a_switch_that_was_lost_is_refused(backbone):
    decoder = backbone("sdpa")
    set_attention(decoder, bi_last(2))
    middle = deepcopy(decoder)
    probe(middle, bi_last(2))
    parts(middle)[0][1].self_attn.sees = earlier
    assert torch.equal(sight(middle), ALL), "the last layer's states alone do not show it"
    with pytest.raises(UserError, match="15 do not see what they must"):
        probe(middle, bi_last(2))
    with pytest.raises(UserError, match=r"attn\.layers=4 is more than the 3 layers"):
        set_attention(decoder, bi_last(4))


def test_frozen_states_are_kept_apart(compose_cell):
    def key(attn, *words):
        cfg = compose_cell("mean", attn, *words)
        decoder = load_backbone(cfg["model"], torch.float32)
        encoder = Encoder(decoder, torch.nn.Identity(), True, torch.float32)
        return json.dumps(identity(encoder, cfg, PRECISIONS["fp32"]), sort_keys=True)

    keys = [key("causal"), key("bi_last"), key("bi_last", "attn.layers=2"), key("bi")]
    assert len(set(keys)) == 4
