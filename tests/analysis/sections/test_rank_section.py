"""All designs at once: the sentence on Friedman's test and the diagram, also of tied, few and many designs."""

import numpy as np
import pytest

from analysis.formats import p_is
from analysis.statistics.ranks import friedman
from tests.analysis.three_seeds import write_long

ASKED = ("ranks",)


def section(analyse_words, tmp_path, values):
    """The section for scores [designs, tasks], and the matrix."""
    types = {f"t{k:02}": "STS" for k in range(values.shape[1])}
    path = write_long(tmp_path / "t.csv", values, [f"m{k}" for k in range(len(values))], types)
    result = analyse_words(f"scores={path}")
    return next(iter(result.sections), None), result.compared.matrix


def test_the_sentence_is_of_the_test(analyse_words, tmp_path):
    values = np.random.default_rng(0).normal(0.5, 0.05, (4, 12)) + np.arange(4)[:, None] / 20
    found, matrix = section(analyse_words, tmp_path, np.round(values, 4))
    test = friedman(matrix.to_numpy())
    assert f"F {test.f:.2f}" in found.notes[0]
    assert p_is(test.p_f) in found.notes[0]


@pytest.mark.parametrize("values", [np.full((3, 6), 0.5), np.tile([[0.3], [0.4], [0.5]], 6)])
def test_degenerate_scores_print_without_nan(values, analyse_words, tmp_path):
    found, _ = section(analyse_words, tmp_path, values)
    assert "nan" not in found.notes[0]
    assert found.draw()[0].name == "critical_difference"
