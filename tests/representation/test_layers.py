"""Layers: scores by mteb from one forward pass, likeness over a sample, tables and figures of both."""

import numpy as np
import pytest

from evaluation.candidates import Candidate
from representation.encoders_studied import Studied, distinct_backbones, read_encoders
from representation.layers import layer_likeness, layer_scores, layer_vectors, linear_cka, mean_cosine, section

N = 23


@pytest.fixture(scope="module")
def scored(two_encoders, texts, settings):
    return layer_scores(distinct_backbones(two_encoders), texts.task_set, settings)


def with_pooler(settings, pooler):
    from cli.compose import composed, plain

    words = [f"model.path={settings['model']['path']}", "attn=bi", f"pooler={pooler}"]
    words += ["precision=fp32", "accelerator=cpu", "max_length=48", f"results={settings['results']}"]
    return plain(composed("representation", words))


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

    from evaluation.scoring import Options, score
    from evaluation.variants import read_by

    assert scored.groupby(["decoder", "pooling", "layer"]).ngroups == 2 * 2 * 3
    (variant,) = read_by([two_encoders[1].candidate], ["layer:1/mean"])
    alone = score(replace(variant, results=tmp_path), texts.task_set.tasks, Options())
    own = scored[(scored["decoder"] == "untrained, bi") & (scored["pooling"] == "mean") & (scored["layer"] == 1)]
    assert dict(zip(own["task"], own["score"], strict=True)) == pytest.approx(
        {task: value for task, (_, value) in alone.scores.items()}
    )


class Pretend(Candidate):
    """The untrained weights, said to be a run's."""

    trained = True


def test_likeness_is_of_the_sample_and_of_the_runs_own_start(two_encoders, texts, settings):
    _, bi = two_encoders
    start = Studied(bi.candidate, "untrained, bi", "untrained, bi")
    run = Studied(Pretend(bi.candidate.manifest, bi.candidate.results), "run", "run")
    within, moved = layer_likeness([start, run], texts, settings)
    states = layer_vectors(bi, texts, texts.every)["eos"]
    own = within[(within["decoder"] == "run") & (within["pooling"] == "eos")].set_index(["layer", "other"])
    assert own.loc[(0, 2), "cka"] == pytest.approx(linear_cka(states[0], states[2]))
    assert own.loc[(2, 1), "cosine"] == pytest.approx(mean_cosine(states[1], states[2]))
    assert set(moved["decoder"]) == {"run"}
    np.testing.assert_allclose(moved[["cka", "cosine"]], 1)


def test_the_answer(two_encoders, texts, settings):
    found = section(two_encoders, texts, settings)
    assert [d.name for d in found.draw()] == ["layers_curves", "layers_likeness"]
    assert [len(table.frame) for table in found.tables] == [2 * 2]
    assert len([axes for axes in found.draw()[0].figure.axes if axes.lines]) == 2 * 3


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def by_hsic(x, y):
    """Kornblith et al. 2019, equations 3 and 4: HSIC(K, L) = tr(K H L H) / (n - 1)^2."""
    n = len(x)
    centre = np.eye(n) - np.ones((n, n)) / n

    def hsic(k, el):
        return np.trace(k @ centre @ el @ centre) / (n - 1) ** 2

    k, el = x @ x.T, y @ y.T
    return hsic(k, el) / np.sqrt(hsic(k, k) * hsic(el, el))


@pytest.mark.parametrize(("d", "e"), [(5, 7), (5, 60), (60, 50)])  # fewer and more entries than texts
def test_cka_is_that_of_hsic(rng, d, e):
    x = rng.normal(size=(N, d)) + 3
    y = x[:, :2] @ rng.normal(size=(2, e)) + rng.normal(size=(N, e))
    assert linear_cka(x, y) == pytest.approx(by_hsic(x, y), rel=1e-10)


def test_cka_is_unmoved_by_rotation_shift_and_scale_but_not_by_other_maps(rng):
    x = rng.normal(size=(N, 6)) * np.arange(1, 7)
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    assert linear_cka(x, 4 * x @ rotation + 2) == pytest.approx(1)
    assert linear_cka(x, x @ np.diag([50, 1, 1, 1, 1, 1])) < 0.9


def test_cka_of_what_does_not_vary_is_not_a_number(rng):
    assert np.isnan(linear_cka(rng.normal(size=(N, 3)), np.ones((N, 3))))


def test_cosine_text_by_text(rng):
    x, y = rng.normal(size=(2, N, 4))
    each = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in zip(x, y, strict=True)]
    assert mean_cosine(x, y) == pytest.approx(np.mean(each))
