"""Causal against bidirectional states: against two models of transformers, and the attention put back afterwards."""

import pytest
import torch
from scipy.spatial.distance import cosine
from transformers import AutoModel

from cli.compose import composed, plain
from encoders.attention.pattern import pattern_of
from encoders.attention.probe import sight, sight_of_layers
from encoders.loading import untrained
from representation import causal_against_bi
from representation.causal_against_bi import bin_names, bin_starts, cosines, measured, switched_attention

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


def test_bins_double():
    assert bin_starts(1) == [0]
    assert bin_starts(9) == [0, 1, 2, 4, 8]
    assert bin_names(bin_starts(9), 9) == ["0", "1", "2-3", "4-7", "8"]
    assert bin_names(bin_starts(64), 6) == ["0", "1", "2-3", "4-5"]


def test_means_are_over_the_tokens_of_a_text_and_then_over_texts(two_encoders, texts):
    studied, wanted, of_texts = two_encoders[1], texts.distinct, []
    encoder = studied.encoder()
    for text in wanted:
        with torch.inference_mode():
            of_texts.append(cosines(encoder.encoder, encoder.tokenizer.batch(encoder.tokenizer([text.text])))[:, 0])
    rows = {(row["layer"], row["positions"]): row for row in measured(studied, texts, wanted)}
    assert len(rows) == 3 * (1 + len(bin_names(bin_starts(48), max(v.shape[1] for v in of_texts))))
    for (layer, name), row in rows.items():
        first, _, last = name.partition("-")
        part = slice(None) if name == "all" else slice(int(first), int(last or first) + 1)
        means = [v[layer - 1, part].double().mean() for v in of_texts if v[layer - 1, part].numel()]
        assert row["texts"] == len(means)
        assert row["cosine"] == pytest.approx(float(torch.stack(means).mean()), abs=1e-5)


def test_the_answer_joins_starts_that_share_weights(two_encoders, texts, settings):
    answer = causal_against_bi.answer(two_encoders, texts, settings)
    assert [row[0].text for row in answer.grids[0].rows] == ["untrained"]
    assert [drawing.name for drawing in answer.drawings] == ["causal_against_bi"]
