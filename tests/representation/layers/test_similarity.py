"""Linear CKA against HSIC written out with centring matrices; cosines against loops."""

import numpy as np
import pytest

from representation.layers.likeness import between_layers, linear_cka, mean_cosine

N = 23


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


def test_float32_states_far_from_zero_lose_nothing(rng):
    x = (rng.normal(size=(N, 6)) + 300).astype(np.float32)
    y = (rng.normal(size=(N, 6)) + 300).astype(np.float32)
    assert linear_cka(x, y) == pytest.approx(by_hsic(x - x.mean(0, dtype=float), y - y.mean(0, dtype=float)), rel=1e-6)


def test_cosine_text_by_text(rng):
    x, y = rng.normal(size=(2, N, 4))
    each = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in zip(x, y, strict=True)]
    assert mean_cosine(x, y) == pytest.approx(np.mean(each))


def test_between_layers_is_symmetric_and_each_cell_its_own_pair(rng):
    states = rng.normal(size=(3, N, 4))
    table = between_layers(states, linear_cka)
    for i in range(3):
        for j in range(3):
            assert table[i, j] == pytest.approx(linear_cka(states[i], states[j]))
