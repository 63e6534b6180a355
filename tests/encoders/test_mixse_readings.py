"""The router of a trained adapter=mixse as an embedding: its own weights, whatever is beside a text in its batch."""

import numpy as np
import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import load_readings
from encoders.routers import experts_of, routers
from evaluation.candidates import candidates
from evaluation.readings import pooler_config, read_by
from records.run_folder import RunFolder
from tests.contract.conftest import FLOAT32, TEXTS
from tests.routing import literal
from training.run import train_run

WORDS = ["moee:routing", "moee:routing/mean", "moee:concat"]


@pytest.fixture(scope="module")
def poolers(mixse_run):
    return {word: pooler_config(word, mixse_run[1]) for word in WORDS} | {"mean": mixse_run[1]["pooler"]}


def vectors(readings, texts):
    found = {}
    for places, parts in readings.parts(texts):
        for name, rows in parts.items():
            found.setdefault(name, {}).update(zip(places, rows, strict=True))
    return {name: np.stack([rows[i] for i in range(len(texts))]) for name, rows in found.items()}


def test_it_is_the_softmax_of_the_router_in_every_sublayer(mixse_run, poolers):
    folder, cfg = mixse_run
    readings = load_readings(cfg, folder, poolers)
    encoder, tokenizer = readings.text_encoder.encoder, readings.text_encoder.tokenizer
    assert experts_of(encoder.backbone) == [3] * 6
    assert [r.name for r in routers(encoder.backbone)][:3] == ["0 self_attn", "0 mlp", "1 self_attn"]
    assert not any(m._forward_hooks for m in routers(encoder.backbone))
    found = vectors(readings, TEXTS)
    for i, text in enumerate(TEXTS):
        weights = literal(encoder, tokenizer.batch(tokenizer([text])))
        for name, wanted in (("moee:routing", weights[:, -1]), ("moee:routing/mean", weights.mean(dim=1))):
            unit = (wanted.flatten() / wanted.norm()).numpy()
            np.testing.assert_allclose(found[name][i], unit, atol=FLOAT32)
        both = np.concatenate([found["moee:concat"][i][:32], weights[:, -1].flatten().numpy()])
        assert found["moee:concat"][i][32:] == pytest.approx(both[32:] * found["moee:concat"][i][32] / both[32])
    assert np.ptp(found["moee:routing"], axis=0).max() > 1e-3


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_and_batch_mates_have_no_effect(mixse_run, poolers, side):
    folder, cfg = mixse_run
    changes = {"padding_side": side, "model": {**cfg["model"], "attn_implementation": "sdpa"}}
    readings = load_readings({**cfg, **changes}, folder, poolers)
    together = vectors(readings, TEXTS)
    for i, text in enumerate(TEXTS):
        for name, alone in vectors(readings, [text]).items():
            assert np.abs(alone[0] - together[name][i]).max() < FLOAT32, name


def test_evaluate_reads_a_run_by_its_router(mixse_run):
    """Routing weights, with the hidden state and without, beside the run itself."""
    (run,) = candidates(plain(composed("evaluate", [f"run='{mixse_run[0]}'"])))
    found = {c.manifest["pooler"]: c.embeddings(None) for c in read_by([run], [*WORDS, "mean"])}
    assert list(found) == ["moee_routing_of_mean", "moee_routing_mean_of_mean", "moee_concat_of_mean", "mean"]
    assert [e.embedding_dim for e in found.values()] == [18, 18, 32 + 18, 32]
    assert len({e.fingerprint for e in found.values()}) == 4
    assert found["mean"].fingerprint == run.load().fingerprint


def test_what_has_no_choice_is_refused(mixse_run, poolers, tmp_path):
    """A run whose experts all tokens have alike, and the start of a run, which has no experts yet."""
    _, cfg = mixse_run
    uniform = {**cfg, "adapter": {**cfg["adapter"], "router": "uniform", "top_k": None, "lr": None}}
    uniform["trainer"] = {**cfg["trainer"], "max_steps": 0}
    train_run(uniform, RunFolder(tmp_path / "uniform"))
    for of, run in ((uniform, tmp_path / "uniform"), (cfg, None)):
        with pytest.raises(UserError, match="its router has no choice"):
            load_readings(of, run, {"RW": poolers["moee:routing"]})
