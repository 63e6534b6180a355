"""Figures draw the numbers of their tables, mark what is significant, and hold up under bad inputs."""

import shutil
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from analysis.drawings.drawing import figure_bytes, write_figures
from analysis.drawings.fit import short_names
from analysis.drawings.style import house_style
from analysis.questions.compared_pairs import compare_pairs
from analysis.questions.pair_figures import forest, heat_map
from analysis.questions.question import Material
from analysis.settings import Settings
from analysis.write import draw
from tests.analysis.three_seeds import by_seed, long_frame

ASKED = ("design_by_type", "design_figures", "pairs", "ranks")


def random(count, tasks=10):
    rng = np.random.default_rng(0)
    return np.round(rng.uniform(0.4, 0.6, (count, tasks)) + np.linspace(0, 0.2, count)[:, None], 4)


def named(drawings):
    return {drawing.name: drawing for drawing in drawings}


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def lines(axes):
    """The horizontal intervals of a panel: place -> (low, high)."""
    segments = [s for c in axes.collections if isinstance(c, LineCollection) for s in c.get_segments()]
    return {round(float(s[0][1])): tuple(sorted(float(x) for x in s[:, 0])) for s in segments}


@pytest.fixture(scope="module")
def wide(tmp_path_factory, analyse_words):
    """Return a function: scores [designs, tasks] and names -> result; tasks are mteb's, of two types."""
    folder = tmp_path_factory.mktemp("wide")
    tasks = ["STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R", "SciFact", "ArguAna", "FiQA2018"]

    def make(values, names, *words):
        own = tasks[: values.shape[1]]
        rows = [",".join([f'"{n}"', *map(repr, row)]) for n, row in zip(names, values.tolist(), strict=True)]
        (folder / "wide.csv").write_text("\n".join([f"model,{','.join(own)}", *rows]) + "\n")
        return analyse_words(f"scores={folder / 'wide.csv'}", *words)

    return make


@pytest.fixture(scope="module")
def three(wide):
    """Three designs, and their figures: not to be changed."""
    result = wide(random(3), "abc")
    return result, draw(result)


def inside(drawing):
    """Whether all that is drawn, labels included, lies within the page."""
    width, height = drawing.figure.get_size_inches()
    with house_style():
        box = drawing.figure.get_tightbbox()
    return box.x0 >= -0.01 and box.y0 >= -0.01 and box.x1 <= width + 0.01 and box.y1 <= height + 0.01


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (np.full((3, 10), 0.5), ["a", "b", "c"]),
        (random(4), [f"a_very_long_organisation__a-model-of-many-words-{k * 30 * 'x'}-v{k}-$x_%&#" for k in range(4)]),
    ],
    ids=["all equal", "long names"],
)
def test_bad_cases_are_drawn_within_the_page(wide, values, names):
    drawings = draw(wide(values, names))
    assert {"forest", "tasks"} <= set(named(drawings))
    for drawing in drawings:
        assert inside(drawing), drawing.name
        assert drawing.alt
        assert drawing.caption


def test_names_are_short_and_never_alike():
    names = [f"{'x' * 60}{k}{'y' * 60}" for k in range(12)]
    short = short_names([*names, "plain"])
    assert len(set(short.values())) == 13
    assert max(map(len, short.values())) <= 40
    assert short["plain"] == "plain"


def test_files_are_the_same_bytes_and_embed_their_fonts(three, tmp_path):
    result, (one, *_) = three
    other = draw(result)[0]
    for kind in ("pdf", "png", "svg"):
        assert figure_bytes(one, kind) == figure_bytes(other, kind), kind
    paths = write_figures([one], tmp_path / "figures")
    assert sorted(p.name for p in paths) == ["forest.pdf", "forest.png"]
    pdf = (tmp_path / "figures" / "forest.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf
    if shutil.which("pdffonts"):
        listed = subprocess.run(["pdffonts", str(paths[0])], capture_output=True, text=True, check=True).stdout
        assert all("yes yes" in line for line in listed.splitlines()[2:])


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
        low, high = lines(axes)[place]
        assert (low + high) / 2 == pytest.approx(marked[place]) == pytest.approx(gaps.mean())


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_marks_are_those_of_the_pairs(seeds):
    rng = np.random.default_rng(0)
    scores = 0.4 + rng.uniform(0, 0.01, (4, 10)) + 0.1 * np.arange(4)[:, None]
    material = plain(scores, "abcd", seeds=seeds).material
    found = "over tasks and seeds" if seeds == 3 else "over tasks only"
    assert (material.pairs["significant"] == found).all()
    one, square = forest(material), heat_map(material)
    marks = list(one.figure.axes[0].lines[:-1])
    looks = {(line.get_marker(), line.get_markerfacecolor()) for line in marks}
    assert looks == ({("o", "#0072B2")} if seeds == 3 else {("D", "white")})
    assert f"significant {found}" in texts(one.figure)
    mark = "*" if seeds == 3 else "\N{DAGGER}"
    assert len([text for text in texts(square.figure.axes[0]) if mark in text]) == 12


def test_the_heat_map_holds_each_difference_with_its_sign(wide):
    result = wide(random(4), "abcd")
    figure = named(draw(result))["heat_map"].figure
    values = np.asarray(figure.axes[0].collections[0].get_array())
    order = list(result.material.matrix.mean().sort_values(ascending=False).index)
    rows = result.material.pairs[result.material.pairs["type"] == "All"]
    for row in rows.itertuples():
        place = order.index(row.second), order.index(row.first)
        assert values[place] == pytest.approx(row.mean_difference)
        assert values[place[::-1]] == pytest.approx(-row.mean_difference)
        number = f"{row.mean_difference:+.4f}".replace("0.", ".", 1).replace("-", "\N{MINUS SIGN}")
        assert number in texts(figure) or f"{number}\n" in "".join(texts(figure))


def test_two_designs_have_no_heat_map_and_a_control_neither(wide):
    assert heat_map(wide(random(2), "ab").material) is None
    assert heat_map(wide(random(4), "abcd", "against=a").material) is None
