"""Causal against bidirectional states: against two models of transformers, and the attention put back afterwards."""

import pytest
import torch
from scipy.spatial.distance import cosine
from transformers import AutoModel

from cli.compose import composed, plain
from encoders.attention.pattern import pattern_of
from encoders.attention.probe import sight, sight_of_layers
from encoders.loading import untrained
from representation.probes import causal_against_bi
from representation.probes.causal_against_bi import cosines, switched_attention

TEXTS = ["the sum of two arrays", "type", "a new array is returned with the same shape and type of its first argument"]


def encoder(small_model, attn, *words):
    usual = [f"attn={attn}", "pooler=mean", "precision=fp32", f"model.path={small_model}", "max_length=48"]
    return untrained(plain(composed("evaluate", [*usual, "accelerator=cpu", *words])))


@pytest.mark.parametrize("attn", ["causal", "bi", "bi_last"])
@pytest.mark.parametrize("kernel", ["unpadded", "sdpa", "eager"])
def test_the_switch_holds_within_and_is_undone_after(small_model, attn, kernel):
    backbone = encoder(small_model, attn, f"model.attn_implementation={kernel}").encoder.backbone
    before = sight_of_layers(backbone)
    for name in ("causal", "bi"):
        with switched_attention(backbone, pattern_of({"name": name})):
            seen = sight(backbone)
            assert torch.equal(seen, torch.ones_like(seen).tril() if name == "causal" else torch.ones_like(seen))
        assert torch.equal(sight_of_layers(backbone), before)
    with pytest.raises(ZeroDivisionError), switched_attention(backbone, pattern_of({"name": "causal"})):
        raise ZeroDivisionError
    assert torch.equal(sight_of_layers(backbone), before)


@pytest.mark.parametrize("kernel", ["unpadded", "eager"])
def test_cosines_are_those_of_two_models_of_transformers(small_model, kernel):
    own = encoder(small_model, "bi_last", f"model.attn_implementation={kernel}")
    model = AutoModel.from_pretrained(small_model, attn_implementation="eager").eval()
    rows = own.tokenizer(TEXTS)
    with torch.inference_mode():
        ours = cosines(own.encoder, own.tokenizer.batch(rows))
    for b, row in enumerate(rows):
        states = []
        for is_causal in (True, False):
            n = len(row)
            mask = torch.full((n, n), -torch.inf).triu(1) if is_causal else torch.zeros(n, n)
            with torch.no_grad():
                out = model(torch.tensor([row.ids]), attention_mask=mask[None, None], output_hidden_states=True)
            states.append(torch.stack(out.hidden_states[1:])[:, 0])
        for layer in range(3):
            for t in range(len(row)):
                wanted = 1 - cosine(states[0][layer, t], states[1][layer, t])
                assert float(ours[layer, b, t]) == pytest.approx(wanted, abs=1e-5)


def test_the_last_token_of_the_first_layer_sees_the_same_both_ways(small_model):
    """Closed form: under either mask it sees all tokens, whose embeddings no mask has touched."""
    own = encoder(small_model, "causal")
    batch = own.tokenizer.batch(own.tokenizer(TEXTS))
    with torch.inference_mode():
        values = cosines(own.encoder, batch)
    rows = torch.arange(len(TEXTS))
    assert torch.allclose(values[0, rows, batch.view.last()], torch.ones(3), atol=1e-6)
    assert (values[0][batch.roles == 2] < 0.999).any()


def test_the_answer_joins_starts_that_share_weights(two_encoders, texts, settings):
    answer = causal_against_bi.answer(two_encoders, texts, settings)
    assert [row[0].text for row in answer.grids[0].rows] == ["untrained"]
    frame = answer.frames["causal_against_bi"]
    assert sorted(set(frame["layer"])) == [1, 2, 3]
    first = frame[(frame["layer"] == 1) & (frame["positions"] == "0")].iloc[0]
    distinct = {text.text for text in texts.every}
    assert first["texts"] == first["tokens"] == len(distinct)
    assert f"over {len(distinct)} distinct texts" in answer.drawings[0].caption
    assert frame["cosine"].between(-1, 1).all()
