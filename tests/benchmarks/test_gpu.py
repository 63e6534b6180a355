"""The GPU benchmark on a CPU with two narrow layers: its structure and its arithmetic, no timing."""

import json
from dataclasses import replace

import pytest
import torch

from benchmarks import rounds
from benchmarks.gpu_card import figures as figures_module
from benchmarks.gpu_card import gpu, heat
from benchmarks.gpu_card.contestants import Encoding, Training
from benchmarks.gpu_card.figures import figures, flops_of, keep_record, read_records
from benchmarks.gpu_card.heat import Plan, cells, run_heat, until
from benchmarks.gpu_card.lengths import batch_lengths, counted, heaviest, places_a_token, real_work, share
from benchmarks.gpu_card.model import EXECUTIONS, Card, Cell, Texts, card_config, random_backbone
from benchmarks.gpu_card.section import described, explained, ratios
from encoders.chunking import by_token_budget
from encoders.text_encoder import TextEncoder
from training.cost.flops import Polynomial, TrainingFlops, Work, training_flops
from training.large_batch import LargeBatch

CARD = Card(torch.device("cpu"))
VOCABULARY = 8192


@pytest.fixture(scope="module", autouse=True)
def _short_turns():
    """Nothing here reads how fast a turn is: one product will do, with no search for garbage before it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heat, "SECONDS", 0.0)
        patch.setattr(rounds.gc, "collect", lambda: 0)
        yield


@pytest.fixture(scope="module")
def backbone():
    return random_backbone(card_config("mistral_7b", "eos", "causal", small=True), CARD)


@pytest.fixture
def texts():
    lengths = batch_lengths(8, 48, 0)
    return Texts.of(lengths, len(lengths), VOCABULARY)


def contestant(kind, backbone, pooler="eos", attn="causal", **changes):
    config = {**card_config("mistral_7b", pooler, attn, small=True), **changes}
    return kind(Cell(pooler, attn), config, backbone, CARD)


@pytest.fixture(scope="module")
def records(backbone):
    kept = {}
    for part, poolers in (("training", ("eos", "multilayer")), ("encoding", ("eos",))):
        plan = Plan("mistral_7b", part, poolers, 60, 2, 600.0, small=True)
        run_heat(plan, backbone, CARD, lambda record, part=part: kept.__setitem__(part, json.loads(json.dumps(record))))
    return kept


def test_a_batch_has_the_lengths_of_its_columns():
    lengths = batch_lengths(2048, 512, seed=0)
    queries, documents = lengths[:2048], lengths[2048:]
    assert len(documents) == 4096
    assert max(lengths) == 512
    assert sum(queries) / 2048 == pytest.approx(20, rel=0.1)
    assert sum(documents) / 4096 == pytest.approx(120, rel=0.1)
    assert max(batch_lengths(16, 48, seed=0)) == 48


@pytest.mark.parametrize("most", [None, 32])
def test_shares_are_whole_chunks_and_together_the_batch(most):
    lengths = batch_lengths(256, 512, seed=1)
    whole = by_token_budget(lengths, 4096, most)
    stride = round(sum(lengths) / 16_384)
    parts = [share(lengths, 4096, most, 16_384, number) for number in range(stride)]
    assert sorted(n for part in parts for n in part) == sorted(lengths)
    assert parts[0] == share(lengths, 4096, most, 16_384, stride), "the rounds go round"
    again = [[part[i] for i in chunk] for part in parts for chunk in by_token_budget(part, 4096, most)]
    assert sorted(map(tuple, again)) == sorted(tuple(lengths[i] for i in c) for c in whole)


def test_the_heaviest_chunks_are_those_of_the_longest_and_of_the_most_texts():
    assert heaviest([9, 10, 2, 2, 2, 2, 1], 10, None) == [10, 2, 2, 2, 2, 1]


def test_layers_are_counted_from_two_of_them():
    config = card_config("qwen2_0_5b", "multilayer", "bi", small=True)
    config["model"]["architecture"]["num_hidden_layers"] = 5
    whole, found = training_flops(config), counted(config)
    assert (found.forward, found.both, found.again) == (whole.forward, whole.both, 1)


def test_work_is_of_real_tokens_and_places_are_padded():
    lengths = [10, 6, 4, 4]
    assert real_work(lengths, 12, None) == Work(chunks=3, texts=4, tokens=24, squares=100 + 36 + 16 + 16)
    assert places_a_token(lengths, 12, None) == (10 + 2 * 6 + 4) / 24


def test_training_moves_weights_and_frees_them(backbone, texts):
    run = contestant(Training, backbone, "multilayer", "bi")
    run.enter()
    before = [p.detach().clone() for p in run.trained]
    assert run(texts) == sum(map(len, texts.rows))
    assert torch.isfinite(run.loss)
    assert sum(not torch.equal(a, b) for a, b in zip(before, run.trained, strict=True)) > 20
    run.leave()
    assert not {"encoder", "optimizer", "trained", "step"} & run.__dict__.keys()
    assert all(p.grad is None for p in backbone.parameters())


def test_the_loss_is_over_the_whole_batch(backbone, texts):
    """Of random directions the loss is about log(documents), whatever share of the texts is run."""
    run = contestant(Training, backbone)
    run.config["objective"]["temperature"] = 1e3  # all cosines count alike
    for part in (texts, Texts(texts.rows[:5], texts.whole)):
        loss = run._loss_of(part)(torch.randn(len(part.rows), 64))
        assert loss == pytest.approx(torch.log(torch.tensor(16.0)).item(), abs=1e-2)


def test_encoding_gives_the_encoder_s_vectors(backbone, texts):
    run = contestant(Encoding, backbone, "mean", "bi")
    run.enter()
    assert run(texts) == sum(map(len, texts.rows))
    with torch.inference_mode():
        alone = run.encoder(run.tokenizer.batch(texts.rows[:1])).numpy()
    assert run.vectors.shape == (24, 64)
    assert abs(run.vectors[0] - alone[0]).max() < 2e-2  # bf16
    run.leave()


@pytest.mark.parametrize("kind", [Training, Encoding])
def test_out_of_memory_halves_the_budget_and_then_gives_up(backbone, texts, monkeypatch, kind):
    """A card that holds 40 padded tokens: its memory is played by the two calls that run a chunk."""
    room, seen = 40, []

    def refuse(budget):
        seen.append(budget)
        if budget > room:
            raise torch.OutOfMemoryError("no room")

    backward, encode = LargeBatch.backward, TextEncoder.encode
    monkeypatch.setattr(
        LargeBatch, "backward", lambda self, *words, **k: refuse(self.plan.token_budget) or backward(self, *words, **k)
    )
    monkeypatch.setattr(TextEncoder, "encode", lambda self, *words: refuse(self.token_budget) or encode(self, *words))
    run = contestant(kind, backbone)
    run.enter()
    assert run(texts) > 0
    assert (seen, run.budget, run.most, run.failed) == ([128, 64, 32], 32, 1, False)
    run.leave()
    room = 8
    run = contestant(kind, backbone)
    run.enter()
    assert run(texts) == run(texts) == 0
    assert run.failed
    run.leave()


def test_every_cell_is_run_and_heads_once_more_in_tf32():
    assert {c.name for c in cells(["eos"])} == {f"eos x {a}, {e}" for a in ("causal", "bi") for e in EXECUTIONS}
    names = [c.name for c in cells(["lastlayer"])]
    assert len(names) == 5
    assert names[-1] == "lastlayer x bi, unpadded, head in tf32"


def test_until_stops_before_a_round_that_would_end_too_late():
    ticks = iter([0, 0, 10, 25, 40])
    assert list(until(range(9), 50, lambda: next(ticks))) == [0, 1, 2]  # at 40, one more round of 15 would end at 55
    ticks = iter([0, 0, 100])
    assert list(until(range(9), 50, lambda: next(ticks))) == [0]


def test_a_record_holds_every_cell_and_round(records):
    for part, record in records.items():
        assert (record["part"], record["model"]) == (part, "mistral_7b")
        assert len(record["works"]) == 2
        assert set(record["rates"]) == {*record["cells"], "bf16", "tf32", "fp32"}
        assert all(len(rates) == 2 and min(rates) > 0 for rates in record["rates"].values())
        assert record["cells"]["eos x bi, padded"]["peak_bytes"] is None, "a CPU has no meter of its own"


def synthetic(part, **rates):
    cell = {"pooler": "lastlayer", "attn": "bi", "execution": "padded", "tf32": False}
    cell |= {"token_budget": 64, "peak_bytes": 3 * 2**30, "held_bytes": 2**30}
    works = [{"chunks": 1, "texts": 2, "tokens": 100, "squares": 5000}] * 2
    return {"model": "m", "part": part, "small": True, "cells": {"a": cell}, "works": works, "rates": rates}


def test_utilisation_is_flops_over_seconds_over_rate(monkeypatch):
    backbone = Polynomial(0, 0, 10.0, 0.1)
    head = Polynomial(100.0, 50.0, 11.0, 0.1)
    counts = {"eos": TrainingFlops(backbone, backbone, 1), "lastlayer": TrainingFlops(head, head, 1)}
    monkeypatch.setattr(figures_module, "flops_of", lambda model, pooler, attn, small: counts[pooler])
    record = synthetic("training", a=[50.0, 25.0], bf16=[1e4, 1e4], fp32=[1e3, 1e3], tf32=[1.0, 1.0])
    found = figures(record, "a")
    backbone_flops = 2 * (10 * 100 + 0.1 * 5000)  # forward, and forward with backward, which cost the same here
    head_flops = 2 * (100 + 50 * 2 + 1 * 100)
    assert found.of_bf16.median == pytest.approx((backbone_flops + head_flops) * (1 / 2 + 1 / 4) / 2 / 1e4)
    assert found.of_limit.median == pytest.approx((backbone_flops / 1e4 + head_flops / 1e3) * (1 / 2 + 1 / 4) / 2)
    assert found.once.median == pytest.approx(found.of_bf16.median / 2)
    assert found.texts.median == pytest.approx((1.0 + 0.5) / 2)
    encoding = figures({**record, "part": "encoding"}, "a")
    assert encoding.once is None
    assert encoding.of_bf16.median == pytest.approx(found.of_bf16.median / 2)


def test_rounds_out_of_memory_count_for_nothing(monkeypatch):
    count = Polynomial(0, 0, 10.0, 0)
    monkeypatch.setattr(figures_module, "flops_of", lambda *_: TrainingFlops(count, count, 0))
    rates = {"bf16": [1e4, 1e4], "fp32": [1e3, 1e3], "tf32": [1.0, 1.0]}
    assert figures(synthetic("encoding", a=[0.0, 0.0], **rates), "a") is None
    assert figures(synthetic("encoding", a=[0.0, 7.0], **rates), "a").tokens.median == 7


def test_the_page_has_a_line_for_each_cell(records):
    record = {"date": "d", "device": "x", "code": {"commit": "c"}, "versions": {"torch": "1", "transformers": "2"}}
    record |= records["training"]
    ran_out = "multilayer x bi, unpadded, head in tf32"
    record["rates"] = {**record["rates"], ran_out: [0.0, 0.0]}
    text = explained(record) + described(record)
    for name in record["cells"]:
        assert f"| {name} |" in text
    assert f"| {ran_out} | out of memory |" in text
    assert ["eos x bi, padded", "eos x causal, padded"] in [line[:2] for line in ratios(record)]
    assert not [line for line in ratios(record) if ran_out in line]


def test_a_newer_record_replaces_the_older_one(tmp_path):
    old = {"device": "x", "model": "m", "part": "training", "poolers": ("eos",), "small": True, "date": "old"}
    for record in (old, {**old, "part": "encoding"}, {**old, "date": "new"}):
        keep_record(tmp_path, record)
    assert [(r["part"], r["date"]) for r in read_records(tmp_path)] == [("encoding", "old"), ("training", "new")]


def test_the_command_keeps_its_records(tmp_path, monkeypatch):
    words = ["gpu", "--quick", "--device", "cpu", "--models", "qwen2_0_5b", "--part", "encoding", "--poolers", "eos"]
    monkeypatch.setattr("sys.argv", [*words, "--rounds", "1", "--out", str(tmp_path)])
    gpu.main()
    (record,) = read_records(tmp_path)
    assert (record["device"], record["small"], record["model"]) == ("cpu", True, "qwen2_0_5b")


def test_the_published_sizes_are_not_run_on_a_cpu(monkeypatch):
    monkeypatch.setattr("sys.argv", ["gpu", "--device", "cpu"])
    with pytest.raises(Exception, match="Give --quick"):
        gpu.main()


def test_flops_are_those_of_the_cell():
    eos, multilayer = (flops_of("qwen2_0_5b", pooler, "bi", True) for pooler in ("eos", "multilayer"))
    assert eos.forward.text == 0 < multilayer.forward.text
    assert replace(multilayer, again=0).of(Work(1, 1, 8, 64)) < multilayer.of(Work(1, 1, 8, 64))
