"""Figures of pairs draw the numbers of their table, and mark what is told of the designs and nothing else."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.pair_figures import forest, heat_map
from analysis.questions.question import Material
from analysis.settings import Settings
from analysis.write import draw
from tests.analysis.figures.seen import lines, named, over_seeds, random, texts
from tests.analysis.three_seeds import by_seed, long_frame

ASKED = ("design_by_type", "design_figures", "pairs", "ranks")


def plain(values, names, seeds=1, **changes):
    """What the figures of pairs read of a result, without its other sections. values: [designs, tasks]."""
    tasks = [f"t{k}" for k in range(values.shape[1])]
    matrix = pd.DataFrame(values.T, index=tasks, columns=list(names))
    settings, types = Settings(scores=(), **changes), {"STS": tasks}
    frame = long_frame(by_seed(values, seeds), list(names), tasks)
    pairs = compare_pairs(matrix, types, settings, frame=frame)
    return SimpleNamespace(material=Material(settings, {}, "", types, types, frame, matrix, pairs))


@pytest.mark.parametrize("control", ["", "a", "c", "d"])
def test_the_leading_figure_is_each_design_minus_one(control):
    """Minus the control, or the highest mean, whichever design of its pair is the second in the table."""
    values = np.round(0.5 + np.random.default_rng(1).normal(0, 0.05, (4, 12)), 3)
    whole = plain(values, "abcd", seeds=3).material
    one = control or whole.matrix.mean().idxmax()
    rows = compare_pairs(whole.matrix, whole.types, whole.settings, control, whole.frame)
    axes = forest(replace(whole, control=control, pairs=rows)).figure.axes[0]
    marks = [line.get_data() for line in axes.lines if line.get_marker() in {"o", "D", "s"}]
    marked = {y: x for data in marks for x, y in zip(*data, strict=True)}
    for place, other in enumerate(label for label in "abcd" if label != one):
        assert axes.get_yticklabels()[place].get_text() == other
        gaps = values["abcd".index(other)] - values["abcd".index(one)]
        averages = [(gaps[i] + gaps[j]) / 2 for i in range(12) for j in range(i, 12)]
        assert marked[place] == pytest.approx(np.median(averages))
        low, high = lines(axes)[place]
        assert low <= marked[place] <= high
        low, mean, high = over_seeds(axes)[place]
        assert mean == pytest.approx(gaps.mean(), abs=1e-9)
        assert (low + high) / 2 == pytest.approx(mean)


@pytest.mark.parametrize("seeds", [1, 2])
def test_with_fewer_than_three_seeds_no_figure_marks_a_pair(seeds):
    """The data of the test before, and a lift that every test over tasks passes."""
    rng = np.random.default_rng(0)
    scores = 0.4 + rng.uniform(0, 0.01, (4, 10)) + 0.1 * np.arange(4)[:, None]
    for count, marked in ((seeds, False), (3, True)):
        material = plain(scores, "abcd", seeds=count).material
        assert material.pairs["significant"].all()
        one, square = forest(material), heat_map(material)
        marks = [line for line in one.figure.axes[0].lines[:-1] if line.get_marker() != "|"]
        looks = {(line.get_marker(), line.get_markerfacecolor()) for line in marks}
        assert looks == ({("o", "#0072B2")} if marked else {("^", "white")})
        assert len(over_seeds(one.figure.axes[0])) == 3 * marked
        assert f"{3 * marked} told of the designs" in one.alt
        assert f"{6 * marked} of 6 pairs are told" in square.alt
        assert ("fewer than 3 seeds: no claim about designs" in texts(one.figure)) != marked
        starred = [text for text in texts(square.figure.axes[0]) if "*" in text]
        assert len(starred) == 12 * marked
        assert ("No star: it would be a claim about designs" in square.caption) != marked
        assert ("* = told of the designs" in square.caption) == marked
        for drawing in (one, square):
            assert "signific" not in f"{drawing.alt} {drawing.caption} {' '.join(texts(drawing.figure))}".lower()


def test_the_heat_map_holds_each_difference_with_its_sign(wide):
    result = wide(random(4), "abcd")
    figure = named(draw(result))["heat_map"].figure
    values = np.asarray(figure.axes[0].collections[0].get_array())
    order = list(result.material.matrix.mean().sort_values(ascending=False).index)
    rows = result.material.pairs[result.material.pairs["type"] == "All"]
    for row in rows.itertuples():
        place = order.index(row.second), order.index(row.first)
        assert values[place] == pytest.approx(row.hodges_lehmann)
        assert values[place[::-1]] == pytest.approx(-row.hodges_lehmann)
        number = f"{row.hodges_lehmann:+.4f}".replace("0.", ".", 1).replace("-", "\N{MINUS SIGN}")
        assert number in texts(figure) or f"{number}\n" in "".join(texts(figure))


def test_two_designs_have_no_heat_map_and_a_control_neither(wide):
    assert heat_map(wide(random(2), "ab").material) is None
    assert heat_map(wide(random(4), "abcd", "against=a").material) is None
