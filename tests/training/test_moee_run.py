"""Corpus statistics of MoEE: stored with a trained run, or made for an untrained encoder; and what is refused."""

import numpy as np
import pytest
from safetensors.torch import load_file

from cli.errors import UserError
from encoders.loading import load_run, untrained
from records.run_folder import RunFolder
from tests.triples import write_triples
from training.checks import check_sizes
from training.run import train_run

TEXTS = ["the sum of two arrays", "a new array of the same shape", "type"]


@pytest.fixture
def words(tmp_path):
    path = write_triples(tmp_path / "triples.jsonl")
    small = ["max_steps=2", "global_batch_size=8", "checkpoint_every=0", "progress=false"]
    words = [f"trainer.{s}" for s in small] + ["data=jsonl", f"data.path='{path}'", "data.validation=4"]
    return [*words, "logging.tensorboard=false", "logging.csv=false", "pooler.standardise_texts=16"]


@pytest.mark.slow
def test_statistics_are_stored_with_the_run(compose_cell, words, tmp_path):
    cfg = compose_cell("moee", "bi", *words, "reference_fault.standardise=corpus")
    train_run(cfg, RunFolder(tmp_path / "run"))
    head = load_file(tmp_path / "run" / "head.safetensors")
    assert int(head["of_hidden.texts"]) == int(head["of_routing.texts"]) == 16
    assert head["of_routing.std"].min() > 0
    loaded = load_run(tmp_path / "run", cfg)
    alone = np.concatenate([loaded.encode([t]) for t in TEXTS])
    assert abs(loaded.encode(TEXTS) - alone).max() < 2e-6
    with pytest.raises(UserError, match="needs statistics"):
        untrained(cfg)


@pytest.mark.slow
def test_a_run_without_a_step_has_statistics_for_an_untrained_encoder(compose_cell, words, tmp_path):
    cfg = compose_cell("moee", "bi", *words, "reference_fault.standardise=corpus", "trainer.max_steps=0")
    check_sizes(cfg)
    train_run(cfg, RunFolder(tmp_path / "run"))
    loaded = load_run(tmp_path / "run", cfg)
    file = tmp_path / "run" / "head.safetensors"
    fitted = untrained(compose_cell("moee", "bi", "reference_fault.standardise=corpus", f"pooler.statistics='{file}'"))
    plain = untrained(compose_cell("moee", "bi"))
    assert fitted.fingerprint != plain.fingerprint
    assert abs(fitted.encode(TEXTS) - plain.encode(TEXTS)).max() > 0.01
    assert abs(fitted.encode(TEXTS) - loaded.encode(TEXTS)).max() < 2e-6
