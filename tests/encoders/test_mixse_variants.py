"""The router of a trained adapter=mixse as an embedding: its own weights, whatever is beside a text in its batch."""

import numpy as np
import pytest

from encoders.encoder import experts_of, routers
from encoders.variants import load_variants
from evaluation.variants import pooler_config
from tests.contract.conftest import FLOAT32, TEXTS
from tests.routing import literal

WORDS = ["moee:routing", "moee:routing/mean", "moee:concat"]


@pytest.fixture(scope="module")
def poolers(mixse_run):
    return {word: pooler_config(word, mixse_run[1]) for word in WORDS} | {"mean": mixse_run[1]["pooler"]}


def vectors(variants, texts):
    found = {}
    for places, parts in variants.parts(texts):
        for name, rows in parts.items():
            found.setdefault(name, {}).update(zip(places, rows, strict=True))
    return {name: np.stack([rows[i] for i in range(len(texts))]) for name, rows in found.items()}


def test_it_is_the_softmax_of_the_router_in_every_sublayer(mixse_run, poolers):
    folder, cfg = mixse_run
    variants = load_variants(cfg, folder, poolers)
    encoder, tokenizer = variants.text_encoder.encoder, variants.text_encoder.tokenizer
    assert experts_of(encoder.backbone) == [3] * 6
    assert [r.name for r in routers(encoder.backbone)][:3] == ["0 self_attn", "0 mlp", "1 self_attn"]
    assert not any(m._forward_hooks for m in routers(encoder.backbone))
    found = vectors(variants, TEXTS)
    for i, text in enumerate(TEXTS):
        weights = literal(encoder, tokenizer.batch(tokenizer([text])))
        for name, wanted in (("moee:routing", weights[:, -1]), ("moee:routing/mean", weights.mean(dim=1))):
            unit = (wanted.flatten() / wanted.norm()).numpy()
            np.testing.assert_allclose(found[name][i], unit, atol=FLOAT32)
        both = np.concatenate([found["moee:concat"][i][:32], weights[:, -1].flatten().numpy()])
        assert found["moee:concat"][i][32:] == pytest.approx(both[32:] * found["moee:concat"][i][32] / both[32])
    assert np.ptp(found["moee:routing"], axis=0).max() > 1e-3
