"""Runs under other templates: trained, saved, loaded and scored with the wording of their side."""

import pytest
import torch

from encoders.loading import load_run
from encoders.templates import template_of
from evaluation.embeddings import Embeddings
from evaluation.instructions import Instructions
from evaluation.mteb_encoder import MtebEncoder, model_meta
from records.run_folder import RunFolder
from tests.triples import write_triples
from training.checks import check_sizes
from training.run import train_run


@pytest.fixture
def run(compose_cell, tmp_path):
    path = write_triples(tmp_path / "triples.jsonl")
    quick = ["max_steps=2", "global_batch_size=8", "checkpoint_every=0", "progress=false"]
    words = [*(f"trainer.{q}" for q in quick), "data=jsonl", f"data.path='{path}'", "data.validation=4"]
    words += ["logging.tensorboard=false", "logging.csv=false", "max_length=100", f"cache_dir='{tmp_path}/cache'"]

    def train(name, pooler, *more):
        cfg = compose_cell(pooler, "causal", *words, f"template={name}", *more)
        check_sizes(cfg)
        folder = RunFolder(tmp_path / f"{name}-{pooler}-{len(more)}")
        train_run(cfg, folder)
        return cfg, folder

    return train


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pooler"), [("echo", "mean"), ("prompteol", "eos"), ("e5", "mean"), ("gritlm", "mean")]
)
def test_a_run_is_scored_with_its_own_template(run, name, pooler):
    cfg, folder = run(name, pooler)
    assert folder.manifest()["config"]["template"]["name"] == name
    encoder = load_run(folder.path, cfg)
    template = template_of(cfg)
    assert encoder.tokenizer.template == template
    embeddings = Embeddings.of(encoder)
    adapter = MtebEncoder(embeddings, model_meta("a/b", "c", embeddings, False), Instructions(), None, template)
    text = "two arrays of the same shape"
    vectors = {side: adapter.encode([{"text": [text]}], **_asked(side)) for side in ("query", "document")}
    for side, vector in vectors.items():
        rows = encoder.tokenizer([text], template.asked("", side))
        with torch.inference_mode():
            wanted = encoder.encoder(encoder.tokenizer.batch(rows))
        assert torch.allclose(torch.from_numpy(vector), wanted, atol=1e-6)
    assert (abs(vectors["query"] - vectors["document"]).max() > 1e-3) == (name == "e5")


class _Side:
    def __init__(self, value):
        self.value = value


def _asked(side):
    class Task:
        name, type, prompt = "T", "Retrieval", None

    return {"task_metadata": Task, "hf_split": "test", "hf_subset": "default", "prompt_type": _Side(side)}
