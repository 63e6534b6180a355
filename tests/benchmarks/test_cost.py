"""The page of costs: its arithmetic with coefficients that can be multiplied by hand, and what it says is assumed."""

import pytest

from benchmarks.cost import study
from benchmarks.cost.page import basis_text, cells_text, disk_text, growth_text, heads_text, scored_text
from benchmarks.cost.study import (
    NEWER,
    PAPER,
    Assumed,
    Inputs,
    Scored,
    base_config,
    hours,
    measured_rate,
    needed,
    scoring_work,
    training_work,
)
from benchmarks.gpu_card import figures as figures_module
from benchmarks.gpu_card.figures import Need
from evaluation.plan.text_volume import Volume
from training.cost.flops import Polynomial, TrainingFlops, Work

ASSUMED = Assumed(bf16=1e12, fp32=1e11, tf32=5e11, utilisation=0.5)
BACKBONE = TrainingFlops(Polynomial(0, 0, 1e9, 0), Polynomial(0, 0, 2e9, 0), again=1)
HEADED = TrainingFlops(Polynomial(0, 1e10, 1e9, 0), Polynomial(0, 3e10, 2e9, 0), again=1)


@pytest.fixture(autouse=True)
def _coefficients(monkeypatch):
    """A token costs 1 GFLOP forward and 2 in all, a text's head 10 and 30; attention nothing."""

    def counted(_model, pooler, _attn, _small=False):
        return BACKBONE if pooler == "eos" else HEADED

    for module in (figures_module, study):
        monkeypatch.setattr(module, "flops_of", counted)


@pytest.fixture
def inputs():
    volumes = [Volume("Corpus", "Retrieval", "document", 900, 400.0), Volume("Pairs", "STS", "query", 100, 40.0)]
    scored = Scored(2, volumes, 1000, 91_000.0, {"Retrieval": (900, 90_000.0), "STS": (100, 1_000.0)})
    made = Inputs([], ASSUMED, 4.0, 8)
    made.__dict__["sets"] = {PAPER: scored, NEWER: scored}
    return made


def line(text, *words):
    (found,) = [row for row in text.splitlines() if all(word in row for word in words)]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_the_recipe_s_work_is_that_of_its_steps():
    config = base_config("mistral_7b")
    work = training_work(config)
    assert work.texts == 1000 * 2048 * 2, "a query and its positive"
    assert 60 < work.tokens / work.texts < 80
    assert work.tokens < training_work(config, longer=2.0).tokens < 2 * work.tokens, "cut at 512"
    full = training_work(config, full=True)
    assert (full.tokens, full.squares) == (work.texts * 512, work.texts * 512**2)


def test_squares_of_scoring_are_bounded():
    assert scoring_work(base_config("mistral_7b"), 10, 8192.0) == Work(2, 10, 8192, 8192 * 512)


def test_gradcache_runs_forward_once_more_and_scoring_has_one_pass():
    work = Work(chunks=1, texts=3, tokens=100, squares=0)
    assert needed("m", "m1", "training", work) == Need(100 * 3e9, 0)
    assert needed("m", "m5", "training", work) == Need(100 * 3e9, 3 * 4e10)
    assert needed("m", "m5", "training", work, once=True) == Need(100 * 2e9, 3 * 3e10)
    assert needed("m", "m5", "encoding", work) == Need(100 * 1e9, 3 * 1e10)


def test_hours_are_flops_over_rate_over_share():
    need = Need(backbone=3600e12, head=360e12)
    assert hours(need, None, ASSUMED).hours == pytest.approx(2 * (1 + 1))
    assert hours(need, None, ASSUMED, tf32=True).hours == pytest.approx(2 * (1 + 0.2))
    assert hours(need, 3960e12, ASSUMED).hours == pytest.approx(1 / 3600)
    assert str(hours(need, None, ASSUMED)) == "≈4.0"
    assert str(hours(need, 1.1e12, ASSUMED)) == "1.0"


def record(**changed):
    cell = {"pooler": "eos", "attn": "causal", "execution": "padded", "tf32": False}
    faster = {**cell, "execution": "unpadded"}
    works = [{"chunks": 1, "texts": 2, "tokens": 100, "squares": 0}]
    rates = {"a": [50.0], "b": [200.0], "bf16": [1e12], "fp32": [1e11], "tf32": [1e11]}
    found = {"model": "mistral_7b", "part": "training", "small": False, "cells": {"a": cell, "b": faster}}
    return {**found, "works": works, "rates": rates, **changed}


def test_a_measured_cell_takes_its_quickest_execution():
    assert measured_rate([record()], "mistral_7b", "training", "m1") == pytest.approx(200 * 3e9)
    for other in (record(small=True), record(model="qwen2_0_5b"), record(part="encoding")):
        assert measured_rate([other], "mistral_7b", "training", "m1") is None
    assert measured_rate([record()], "mistral_7b", "training", "m5") is None


def test_the_cells_add_up_and_assumed_ones_are_marked(inputs):
    text = cells_text(inputs)
    work = training_work(base_config("qwen2_0_5b"))
    plain = work.tokens * 3e9 / 1e12 / 0.5 / 3600
    headed, full = (plain + work.texts * 4e10 / rate / 0.5 / 3600 for rate in (ASSUMED.tf32, ASSUMED.fp32))
    assert line(text, "qwen2_0_5b", "m1: eos x causal")[5] == f"≈{plain:,.1f}"
    assert line(text, "qwen2_0_5b", "m5: multilayer x bi")[5] == f"≈{headed:,.1f}"
    assert base_config("qwen2_0_5b")["tf32"], "the hours are those of the experiment's own key"
    of_both = [*inputs.hours("qwen2_0_5b", "m5", inputs.works("qwen2_0_5b"), tf32=False)]
    assert of_both[0].hours == pytest.approx(full)
    assert line(text, "qwen2_0_5b", "m5: multilayer x bi")[8] == str(of_both[0] + of_both[1])
    assert line(text, "qwen2_0_5b", "all five")[5] == f"**≈{plain + 4 * headed:,.1f}**"
    assert f"{2 * (plain + 4 * headed) / 8:,.0f} h for all ten" in text
    measured = Inputs([record()], ASSUMED, 4.0, 8)
    measured.__dict__["sets"] = inputs.sets
    seconds = training_work(base_config("mistral_7b")).tokens / 200
    assert line(cells_text(measured), "mistral_7b", "m1: eos x causal")[5] == f"{seconds / 3600:,.1f}"


def test_growth_is_relative_to_the_published_study(inputs):
    text = growth_text(inputs)
    assert "(x 1.00)" in line(text, "as published")[1]
    assert "(x 2.00)" in line(text, "twice the steps")[1]
    assert "(x 1.00)" in line(text, "twice the steps")[2]
    assert "(x 1.00)" not in line(text, "without GradCache")[1]
    assert line(text, "mistral_7b, m5")[1:3] == ["1e+10", "1e+09"]


def test_what_is_assumed_is_said(inputs):
    assert "**Assumed, not measured** (no GPU was at hand)" in basis_text(inputs)
    heads = heads_text(inputs)
    assert "10 GFLOP a text and forward pass, as many as the backbone's for 10.0 tokens" in heads
    assert "10 times as slow there as in bf16, and\n2 times in TF32" in heads


def test_disk_and_scored_texts(inputs):
    assert line(scored_text(inputs.sets[PAPER]), "all 2 tasks")[1:] == ["1,000", "0.1", "100%"]
    base, adapter, head, checkpoint = map(float, line(disk_text(inputs), "qwen2_0_5b")[1:5])
    assert base == pytest.approx(494_032_768 * 2 / 2**30, abs=0.006)
    assert checkpoint == pytest.approx(3 * (adapter + head), abs=0.03)
    assert (adapter, head) == (0.03, 0.05)
