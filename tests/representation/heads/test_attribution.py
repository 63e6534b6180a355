"""Attention by layer and by class of token on real small encoders, against sums over single texts."""

import numpy as np
import pandas as pd
import pytest
import torch

from cli.compose import composed, plain
from representation import encoders_studied
from representation.encoders_studied import read_encoders
from representation.heads import attribution
from representation.heads.attributed import CLASSES, TokenClasses, attention_weights, attributed


@pytest.fixture
def heads(representation_words):
    """Encoders with heads over layers and over tokens."""
    found = {}
    over_layers, over_tokens = ["pooler=multilayer"], ["pooler=lastlayer"]
    for words in (over_layers, over_tokens, [*over_tokens, "token_choice.lastlayer_tokens=mean"]):
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


@pytest.mark.parametrize("pooler", ["lastlayer", "multilayer"])
def test_what_an_instruction_moves(representation_words, texts, settings, pooler):
    words = [*representation_words, f"pooler={pooler}", "pooler.query=instruction", "max_length=128"]
    (studied,) = read_encoders(plain(composed("representation", [*words, "evaluation.instructions=table"])))
    encoder, wanted = loaded(studied), texts.of_type["Classification"][:6]
    head, found = encoder.encoder.pooler.head, attributed(studied, texts, wanted)
    kept = head.of_instruction.weight.data.clone()
    head.of_instruction.weight.data.zero_()
    still = attributed(studied, texts, wanted)
    assert not still.length.any()
    assert not still.shifted.any()
    head.of_instruction.weight.data.copy_(2 * kept)
    twice = attributed(studied, texts, wanted)
    np.testing.assert_allclose(twice.length, 2 * found.length, rtol=1e-4)
    # each key's mean share of attention changes by no more than what goes to other keys
    change = np.abs(found.attention - still.attention).sum(axis=1) / 2
    assert (found.shifted >= change - 1e-6).all()
    assert (found.shifted > 0.01).all()
    assert (found.shifted < 1).all()
    head.of_instruction.weight.data.copy_(kept)
    answer = attribution.answer([studied], texts, settings)
    assert answer.grids[-1].name == "attribution_instruction"
    encoders_studied._loaded.clear()


def test_the_answer_has_heads_over_several_keys_alone(heads, texts, settings, two_encoders):
    answer = attribution.answer(list(heads.values()), texts, settings)
    assert [grid.name for grid in answer.grids] == ["attribution_layers", "attribution_tokens"]
    assert [drawing.name for drawing in answer.drawings] == ["attribution_layers", "attribution_tokens"]
    assert {row[1].text for row in answer.grids[0].rows} == set(texts.of_type)
    assert "padding" not in answer.grids[1].header
    assert "instruction" not in answer.grids[1].header
    frame = answer.frames["attribution"]
    np.testing.assert_allclose(frame.groupby(["encoder", "type"])["attention"].sum(), 1, atol=1e-5)
    assert len(frame) == len(texts.of_type) * (3 + len(CLASSES))
    (eos,) = read_encoders(plain(composed("representation", ["pooler=eos", "run=null"])))
    assert attribution.answer([eos], texts, settings) is None


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        (["0", "1", "2"], "spread evenly it would be .333 for each"),
        (["1", "2"], "spread evenly it would be .500 for each"),  # pooler.layers=last:2
        ([str(i) for i in range(13)], "even attention is 1 / layers"),
    ],
)
def test_even_attention_is_told_of_the_layers_that_have_columns(layers, said):
    rows = {"encoder": "mean-bi", "type": "STS", "key": layers, "attention": 1 / len(layers), "entropy": 1.0}
    grid = attribution._layer_grid(pd.DataFrame(rows), "some texts")
    assert f"; {said}. Entropy" in grid.caption
