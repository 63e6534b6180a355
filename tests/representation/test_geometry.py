"""Geometry of the vectors that are scored, each number of its own encoder and type."""

import numpy as np
import pytest

from poolers.shared.vector_geometry import alignment
from representation.geometry import anisotropy, own_vectors, section


def test_vectors_are_those_that_are_scored(two_encoders, texts):
    studied = two_encoders[1]
    found, encoder = own_vectors(studied, texts), studied.encoder()
    for wanted in (*texts.of_type.values(), [document for _, document in texts.pairs]):
        own = np.stack([found[text] for text in wanted])
        np.testing.assert_allclose(own, encoder.encode([text.text for text in wanted]), atol=1e-5)


def test_each_number_is_of_its_own_encoder_and_type(two_encoders, texts, settings):
    table = section(two_encoders, texts, settings).frames["geometry"].set_index(["encoder", "type"])
    assert len(table) == 2 * 3
    for studied in two_encoders:
        found = own_vectors(studied, texts)
        queries, documents = (np.stack([found[text] for text in side]) for side in zip(*texts.pairs, strict=True))
        for kind, sample in texts.of_type.items():
            own = np.stack([found[text] for text in sample])
            assert table.loc[(studied.label, kind), "anisotropy"] == pytest.approx(anisotropy(own))
            near = alignment(queries, documents)
            assert table.loc[(studied.label, kind), "alignment"] == pytest.approx(near)
