"""Causal against bidirectional states: against two models of transformers, and the attention put back afterwards."""

import pytest
import torch
from scipy.spatial.distance import cosine
from transformers import AutoModel

from representation.causal_against_bi import bin_names, bin_starts, cosines, measured
from tests.representation.test_read_ahead import encoder

TEXTS = ["the sum of two arrays", "type", "a new array is returned with the same shape and type of its first argument"]


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
