"""evaluation.dims: each dimension is an encoder of its own name, and all come from one encoding."""

from dataclasses import replace

import numpy as np
import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from evaluation.candidates import candidates

TEXTS = ["two arrays", "the sum of two arrays", "shape and type", "two arrays"]


def test_a_prefix_is_the_beginning_of_the_encoders_own_vectors(compose_cell, small_model):
    words = ["pooler=mean", f"model.path={small_model}", "precision=fp32", "evaluation.dims=[4,9,32]"]
    found = candidates(plain(composed("evaluate", words)))
    assert [c.name.partition("/")[2] for c in found] == [f"mean-causal-{d}d-untrained" for d in (4, 9, 32)]
    assert [c.manifest["config"]["evaluation"]["dims"] for c in found] == [[4], [9], [32]]
    (alone,) = candidates(plain(composed("evaluate", words[:-1])))
    whole = alone.load()
    vectors = whole.encode(TEXTS).astype(np.float64)
    fingerprints = {whole.fingerprint}
    for candidate, d in zip(found, (4, 9, 32), strict=True):
        embeddings = candidate.embeddings(None)
        own = embeddings.embed(TEXTS)
        assert own.shape == (4, d)
        assert embeddings.embedding_dim == d
        cut = vectors[:, :d]
        assert np.allclose(own, cut / np.sqrt((cut**2).sum(axis=1, keepdims=True)), atol=1e-6)
        fingerprints.add(embeddings.fingerprint)
        assert embeddings.encoder.meter.texts == 3, "encoded for the first dimension, and never again"
    assert len(fingerprints) == 4


def test_what_no_vector_has_is_refused(candidate):
    with pytest.raises(UserError, match="goes beyond the 512 entries"):
        replace(candidate(), dim=64, siblings=(64, 513)).embeddings(None)
