"""Figures of pairs draw the numbers of their table, and mark what is told of the designs and nothing else."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.pair_figures import forest, forest_by_type, forest_pairs, heat_map
from analysis.questions.question import Material
from analysis.settings import Settings
from analysis.write import draw
from tests.analysis.figures.seen import lines, named, over_seeds, random, texts
from tests.analysis.three_seeds import by_seed, long_frame

ASKED = ("curves", "design_by_type", "design_figures", "pairs", "ranks")


def plain(values, names, seeds=1, **changes):
    """What the figures of pairs read of a result, without its other sections. values: [designs, tasks]."""
    tasks = [f"t{k}" for k in range(values.shape[1])]
    matrix = pd.DataFrame(values.T, index=tasks, columns=list(names))
    settings, types = Settings(scores=(), **changes), {"STS": tasks}
    frame = long_frame(by_seed(values, seeds), list(names), tasks)
    pairs = compare_pairs(matrix, types, settings, frame=frame)
    return SimpleNamespace(material=Material(settings, {}, "", types, types, frame, matrix, pairs))


@pytest.mark.parametrize("seed", range(4))
def test_a_line_of_the_forest_leaves_out_0_exactly_where_its_mark_says_so(seed):
    """Filled disc or open diamond: p at most alpha before the correction. Skewed differences, near zero.

    A disc is filled where the difference is told of the designs; three seeds.
    """
    rng = np.random.default_rng(seed)
    scores = np.round(0.5 + rng.exponential(0.1, (6, 10)) * rng.choice([-1, 1], (6, 1)), 2)
    result = plain(scores, "abcdef", seeds=3, alpha=0.2)
    drawing = forest_pairs(result.material)
    axes = drawing.figure.axes[0]
    drawn = lines(axes)
    said = [float(y) for line in axes.lines for y in line.get_ydata() if line.get_marker() in {"o", "D", "s", "x"}]
    blue = {float(y) for line in axes.lines if line.get_color() in {"#0072B2", "#D55E00"} for y in line.get_ydata()}
    assert len(said) == len(drawn) == 15
    for place, (low, high) in drawn.items():
        assert (low > 0 or high < 0) == (place in blue)
    pairs = result.material.pairs
    assert blue == set(pairs.index[pairs["p"] <= 0.2 * (1 + 1e-9)])
    filled = {float(y) for line in axes.lines if line.get_markerfacecolor() == "#0072B2" for y in line.get_ydata()}
    assert filled == set(pairs.index[pairs["told"]])
    assert filled
    assert all(min(over_seeds(axes)[place]) > 0 or max(over_seeds(axes)[place]) < 0 for place in filled)
    assert f"{len(filled)} told of the designs" in drawing.alt
    assert any(text.startswith("told of the designs (p at most .2)") for text in texts(drawing.figure))


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
        one, square = forest_pairs(material), heat_map(material)
        marks = [line for line in one.figure.axes[0].lines[:-1] if line.get_marker() != "|"]
        looks = {(line.get_marker(), line.get_markerfacecolor()) for line in marks}
        assert looks == ({("o", "#0072B2")} if marked else {("^", "white")})
        assert len(over_seeds(one.figure.axes[0])) == 6 * marked
        assert f"{6 * marked} told of the designs" in one.alt
        assert f"{6 * marked} of 6 pairs are told" in square.alt
        assert ("fewer than 3 seeds: no claim about designs" in texts(one.figure)) != marked
        starred = [text for text in texts(square.figure.axes[0]) if "*" in text]
        assert len(starred) == 12 * marked
        assert ("No star: it would be a claim about designs" in square.caption) != marked
        assert ("* = told of the designs" in square.caption) == marked
        for drawing in (one, square):
            assert "signific" not in f"{drawing.alt} {drawing.caption} {' '.join(texts(drawing.figure))}".lower()


def test_a_pair_with_too_few_seeds_beside_others_is_not_said_to_have_a_large_p():
    scores = 0.4 + np.random.default_rng(0).uniform(0, 0.01, (3, 10)) + 0.1 * np.arange(3)[:, None]
    whole = plain(scores, "abc", seeds=3).material
    frame = whole.frame[(whole.frame["design"] != "c") | (whole.frame["seed"] != "2")]
    pairs = compare_pairs(whole.matrix, whole.types, whole.settings, frame=frame)
    assert pairs["n_seeds"].tolist() == [3, 2, 2]
    assert (pairs["p"] <= 0.05).all()
    assert "p above .05" not in texts(forest(replace(whole, frame=frame, pairs=pairs)).figure)


def test_the_heat_map_speaks_of_no_p_that_it_does_not_show():
    assert "the p after the word seeds" not in heat_map(plain(random(3), "abc", seeds=3).material).caption


def test_the_panels_of_the_task_types_count_what_is_told():
    scores = 0.4 + np.random.default_rng(0).uniform(0, 0.01, (3, 12)) + 0.1 * np.arange(3)[:, None]
    for seeds, told in ((1, 0), (3, 3)):
        whole = plain(scores, "abc", seeds=seeds).material
        tasks = whole.types["STS"]
        types = {"STS": tasks[:8], "Retrieval": tasks[8:]}
        pairs = compare_pairs(whole.matrix, types, whole.settings, frame=whole.frame)
        drawing = forest_by_type(replace(whole, types=types, blocks=types, pairs=pairs))
        assert f"STS {told}, Retrieval 0" in drawing.alt  # four tasks reach no more than .125
        assert "told of the designs" in drawing.alt.lower()
        assert "signific" not in drawing.alt.lower()


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


def test_a_pair_against_the_order_of_the_means_is_marked_also_without_numbers():
    """m1 has the highest mean by one task and is behind m0 on all others."""
    values = np.round(random(14) / 2, 4)
    values[13], values[12] = values[11] + 0.1, values[11] + 0.08
    values[12, 0] += 0.3
    result = plain(values, [f"m{13 - k}" for k in range(14)])
    assert list(result.material.matrix.mean().nlargest(2).index) == ["m1", "m0"]
    drawing = heat_map(result.material)
    turned = sum(row.difference * row.hodges_lehmann < 0 for row in result.material.pairs.itertuples())
    assert f"In {turned} pair" in drawing.caption
    marks = [text.strip("()*") for text in texts(drawing.figure.axes[0])]
    assert marks.count("−") == marks.count("+") == turned >= 1  # noqa: RUF001


def test_two_designs_have_no_heat_map_and_a_control_neither(wide):
    assert "heat_map" not in named(draw(wide(random(2), "ab")))
    assert "heat_map" not in named(draw(wide(random(4), "abcd", "against=a")))
