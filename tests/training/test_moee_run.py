"""Corpus statistics of MoEE: stored with a trained run, or made for an untrained encoder; and what is refused."""

import numpy as np
import pytest
from safetensors.torch import load_file

from cli.errors import UserError
from encoders.loading import load_run, untrained
from tests.triples import quick_run, write_triples
from training.checks import check_sizes
from training.run import train_run

TEXTS = ["the sum of two arrays", "a new array of the same shape", "type"]


@pytest.mark.slow
def test_statistics_are_stored_with_a_run_and_serve_an_untrained_encoder(compose_cell, tmp_path):
    """Of a run without a step, whose states are those of the base."""
    words = [*quick_run(write_triples(tmp_path / "triples.jsonl"), steps=0), "pooler.standardise_texts=16"]
    corpus = "reference_fault.standardise=corpus"
    cfg = compose_cell("moee", "bi", *words, corpus)
    check_sizes(cfg)
    train_run(cfg, tmp_path / "run")
    file = tmp_path / "run" / "head.safetensors"
    head = load_file(file)
    assert int(head["of_hidden.texts"]) == int(head["of_routing.texts"]) == 16
    assert head["of_routing.std"].min() > 0
    loaded = load_run(tmp_path / "run", cfg)
    alone = np.concatenate([loaded.encode([t]) for t in TEXTS])
    assert abs(loaded.encode(TEXTS) - alone).max() < 2e-6
    with pytest.raises(UserError, match="needs statistics"):
        untrained(cfg)
    fitted, plain = (
        untrained(compose_cell("moee", "bi", corpus, f"pooler.statistics='{file}'")),
        compose_cell("moee", "bi"),
    )
    assert fitted.fingerprint != untrained(plain).fingerprint
    assert abs(fitted.encode(TEXTS) - untrained(plain).encode(TEXTS)).max() > 0.01
    assert abs(fitted.encode(TEXTS) - loaded.encode(TEXTS)).max() < 2e-6
