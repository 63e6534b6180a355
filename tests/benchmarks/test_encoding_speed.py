"""What the encoding benchmark times gives our vectors, at any batch size."""

import numpy as np
import pytest

from benchmarks.speed.sentence_transformers_step import sentence_transformer
from benchmarks.speed.step import encoder_of
from benchmarks.speed.work import texts_of
from encoders.text_encoder import TextEncoder


@pytest.mark.parametrize(("pooler", "attn"), [("eos", "causal"), ("multilayer", "bi")])
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
def test_sentence_transformers_encodes_to_our_vectors(compose_cell, batch, pooler, attn, kernel):
    cfg = compose_cell(pooler, attn)
    encoder, tokenizer = encoder_of(cfg)
    texts = texts_of(batch)
    ours = TextEncoder(encoder.eval(), tokenizer, "", 300).encode(texts)
    model = sentence_transformer(cfg, kernel, adapted=False)
    for size in (2, 64):
        theirs = model.encode(texts, batch_size=size, normalize_embeddings=True, show_progress_bar=False)
        np.testing.assert_allclose(theirs, ours, atol=2e-6)
