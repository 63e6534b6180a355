"""Layers: scores by mteb from one forward pass, likeness over a sample, tables and figures of both."""

import numpy as np
import pandas as pd
import pytest

from evaluation.candidates import Candidate
from representation.encoders_studied import Decoder, Studied, decoders, read_encoders
from representation.layers import layers
from representation.layers.layers import BY, layer_grids, layer_scores
from representation.layers.likeness import layer_likeness, layer_vectors, likeness_tables, linear_cka, mean_cosine
from representation.readings import type_means


@pytest.fixture(scope="module")
def scored(two_encoders, texts, settings):
    return layer_scores(decoders(two_encoders), texts.task_set, settings)


def with_pooler(settings, pooler):
    from cli.compose import composed, plain

    words = [f"model.path={settings['model']['path']}", "attn=bi", f"pooler={pooler}"]
    words += ["precision=fp32", "accelerator=cpu", "max_length=48", f"results={settings['results']}"]
    return plain(composed("representation", words))


def test_starts_with_other_heads_are_one_decoder(settings, two_encoders):
    (mean,) = read_encoders(with_pooler(settings, "mean"))
    found = decoders([*two_encoders, mean])
    assert [d.label for d in found] == ["untrained, causal", "untrained, bi"]
    run = Studied(Pretend(mean.candidate.manifest, mean.candidate.results), "mean-bi seed=0", "mean-bi")
    found = decoders([*two_encoders, run])
    assert [(d.label, d.start, d.trained) for d in found] == [
        ("untrained, causal", "", False),
        ("untrained, bi", "", False),
        ("mean-bi", "untrained, bi", True),
    ]
    assert [d.start for d in decoders([run])] == [""]


def test_vectors_of_the_last_layer_are_those_of_the_poolers(settings, texts):
    for pooling in ("mean", "eos"):
        (alone,) = read_encoders(with_pooler(settings, pooling))
        wanted = texts.every[:7]
        expected = alone.encoder().encode([text.text for text in wanted])
        found = layer_vectors(alone, texts, wanted)[pooling]
        assert found.shape == (3, 7, 32)
        unit = found[-1] / np.linalg.norm(found[-1], axis=1, keepdims=True)
        np.testing.assert_allclose(unit, expected, atol=1e-5)


def test_scores_are_what_evaluation_gives_a_layer_alone(scored, two_encoders, texts, tmp_path):
    from dataclasses import replace

    from evaluation.readings import read_by
    from evaluation.scoring import Options, score

    assert scored.groupby(["decoder", "pooling", "layer"]).ngroups == 2 * 2 * 3
    (reading,) = read_by([two_encoders[1].candidate], ["layer:1/mean"])
    alone = score(replace(reading, results=tmp_path), texts.task_set.tasks, Options())
    own = scored[(scored["decoder"] == "untrained, bi") & (scored["pooling"] == "mean") & (scored["layer"] == 1)]
    assert dict(zip(own["task"], own["score"], strict=True)) == pytest.approx(
        {task: value for task, (_, value) in alone.scores.items()}
    )


def test_what_was_scored_is_not_scored_again(scored, two_encoders, texts, settings, monkeypatch):
    monkeypatch.setattr("mteb.evaluate", None)
    pd.testing.assert_frame_equal(layer_scores(decoders(two_encoders), texts.task_set, settings), scored)


class Pretend(Candidate):
    """The untrained weights, said to be a run's."""

    trained = True


def test_likeness_is_of_the_sample_and_of_the_runs_own_start(two_encoders, texts, settings):
    causal, bi = two_encoders
    run = Studied(Pretend(bi.candidate.manifest, bi.candidate.results), "run", "run")
    found = [Decoder("start", (causal,)), Decoder("run", (run,), "start")]
    within, moved = layer_likeness(found, texts, settings)
    before, after = (layer_vectors(studied, texts, texts.every)["eos"] for studied in two_encoders)
    tables = likeness_tables(within, "eos")["run"]
    assert tables["cka"][0, 2] == pytest.approx(linear_cka(after[0], after[2]))
    assert tables["cosine"][2, 1] == pytest.approx(mean_cosine(after[1], after[2]))
    np.testing.assert_allclose(np.diag(tables["cka"]), 1)
    own = moved[moved["pooling"] == "eos"].set_index("layer")
    assert set(moved["decoder"]) == {"run"}
    for layer in range(3):
        assert own.loc[layer, "cka"] == pytest.approx(linear_cka(after[layer], before[layer]))
        assert own.loc[layer, "cosine"] == pytest.approx(mean_cosine(after[layer], before[layer]))


def test_tables_name_the_best_layer():
    rows = [
        ("a", seed, "mean", layer, kind, kind + str(task), 0.1 * layer + 0.01 * task + 0.002 * seed + (kind == "STS"))
        for seed in (0, 1)
        for layer in (0, 1, 2)
        for kind in ("STS", "Retrieval")
        for task in (0, 1)
        if not (kind == "STS" and layer == 2)
    ]
    rows += [("a", seed, "mean", 2, "STS", f"STS{task}", 0.0) for seed in (0, 1) for task in (0, 1)]
    frame = pd.DataFrame(rows, columns=["decoder", "seed", "pooling", "layer", "type", "task", "score"])
    means = type_means(frame, BY)
    assert list(means.columns) == ["Retrieval", "STS"]
    assert means.loc[("a", "mean", 1), "STS"] == pytest.approx(1.106)
    by_layer, best = layer_grids(means, "4 tasks")
    assert [cell.style for cell in by_layer.rows[0][2:]] == ["second", "best", ""]
    assert [cell.text for cell in best.rows[0][2:]] == [".2060 (2)", "1.1060 (1)", "-.5030"]


def test_answer_has_captions_that_say_over_what(two_encoders, texts, settings):
    found = layers.answer(two_encoders, texts, settings)
    assert [d.name for d in found.drawings] == ["layers_curves", "layers_likeness_mean", "layers_likeness_eos"]
    assert "3 tasks of benchmark docs_smoke (networkx)" in found.drawings[0].caption
    assert "12 texts of each of 3 task types" in found.drawings[1].caption
    panels = [axes for axes in found.drawings[0].figure.axes if axes.lines]
    assert len(panels) == 2 * 3
    assert panels[0].get_title() == "Classification"
