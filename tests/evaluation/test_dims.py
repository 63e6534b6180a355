"""evaluation.dims: each dimension is an encoder of its own name, and all come from one encoding."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from evaluation.candidates import candidates
from evaluation.command import run
from evaluation.results import MANIFEST

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


def test_all_dimensions_are_scored_side_by_side(folder: Path, small_model, tmp_path):
    words = ["pooler=mean", f"model.path={small_model}", "precision=fp32", "evaluation.dims=[4,32]", "progress=false"]
    words += ["~benchmark", f"tasks_dir='{folder}'", f"results='{tmp_path / 'scores'}'"]
    outcomes = run(plain(composed("evaluate", words)))
    (alone,) = run(plain(composed("evaluate", [w for w in words if "dims" not in w])))
    assert [o.folder.parent.name.partition("__")[2] for o in outcomes] == [
        f"mean-causal-{d}d-untrained" for d in (4, 32)
    ]
    assert {t: s for t, (_, s) in outcomes[1].scores.items()} == pytest.approx(
        {t: s for t, (_, s) in alone.scores.items()}, abs=1e-6
    )
    assert outcomes[0].scores != outcomes[1].scores
    assert outcomes[0].texts > outcomes[1].texts == 0
    for outcome, dim in zip(outcomes, (4, 32), strict=True):
        beside = json.loads((outcome.folder / MANIFEST).read_text())
        assert beside["config"]["evaluation"]["dims"] == [dim]
    again = run(plain(composed("evaluate", words)))
    assert [o.computed for o in again] == [0, 0]
