"""Figures show the result's own numbers, and hold up under the inputs that break figures."""

import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.drawings.drawing import figure_bytes, write_figures
from analysis.drawings.fit import short_names
from analysis.drawings.style import house_style
from analysis.questions.critical_difference import diagram
from analysis.write import draw
from tests.analysis.figures.seen import named, random, texts

ASKED = ("curves", "design_by_type", "design_figures", "pairs", "ranks")


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


def test_the_forest_draws_the_differences_of_the_table(three):
    result, drawings = three
    figure = named(drawings)["forest_pairs"].figure
    drawn = sorted(
        float(x) for line in figure.axes[0].lines for x in line.get_xdata() if line.get_marker() not in ("None", "")
    )
    rows = result.material.pairs[result.material.pairs["type"] == "All"]
    assert drawn == pytest.approx(sorted(rows["hodges_lehmann"]))
    assert "b − a" in texts(figure)  # noqa: RUF001


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (random(2), ["a", "b"]),
        (np.full((3, 10), 0.5), ["a", "b", "c"]),
        (random(3, 2), ["a", "b", "c"]),
        (-random(3), ["a", "b", "c"]),
        (random(4), [f"a_very_long_organisation__a-model-of-many-words-{k * 30 * 'x'}-v{k}-$x_%&#" for k in range(4)]),
    ],
    ids=["one pair", "all equal", "one type of two tasks", "negative", "long names"],
)
def test_bad_cases_are_drawn_within_the_page(wide, values, names):
    drawings = draw(wide(values, names))
    assert {"forest", "tasks"} <= set(named(drawings))
    for drawing in drawings:
        assert inside(drawing), drawing.name
        assert drawing.alt
        assert drawing.caption


def test_hundreds_of_designs_are_cut_and_it_is_said(wide):
    drawings = named(draw(wide(random(60), [f"model-{k:02}" for k in range(60)])))
    assert "Of 60 designs the 13 of the highest mean are drawn." in drawings["forest"].caption
    assert "Of 60 designs the 10 of the highest mean are drawn." in drawings["forest_pairs"].caption
    assert "Of 60 designs the 40 of the highest mean are drawn." in drawings["heat_map"].caption
    assert "Of 60 designs the 12 of the highest mean are drawn." in drawings["tasks"].caption
    assert "model-59" in " ".join(texts(drawings["forest"].figure))
    assert all(max(d.figure.get_size_inches()) < 16 for d in drawings.values())


def test_costs_and_before_after_need_manifests(study, spread_scores, analyse_words):
    for k, design in enumerate(("eos-causal", "lastlayer-bi")):
        for trained in (True, False):
            study.run(design, spread_scores(0.3 + 0.05 * k + 0.1 * trained), trained=trained)
    drawings = named(draw(analyse_words(f"scores={study.root}")))
    assert {"before_after", "cost_score"} <= set(drawings)
    assert "eos-causal +.1000 (0 of 16 tasks lose)" in drawings["before_after"].alt
    assert all(inside(drawing) for drawing in drawings.values())


def test_names_are_short_and_never_alike():
    names = [f"{'x' * 60}{k}{'y' * 60}" for k in range(12)]
    short = short_names([*names, "plain"])
    assert len(set(short.values())) == 13
    assert max(map(len, short.values())) <= 40
    assert short["plain"] == "plain"


def test_the_critical_difference_diagram_draws_its_ranks_and_bars():
    ranks = {"a": 1.5, "b": 2.0, "c": 3.9, "d": 2.6}
    ranked = SimpleNamespace(ranks=ranks, cd=1.2, cliques=[("a", "b", "d"), ("d",), ("a", "b")], alpha=0.05)
    with house_style():
        drawing = diagram(ranked, "20 tasks")
        drawing.figure.draw_without_rendering()
    axes = drawing.figure.axes[0]
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 3]
    assert len(bars) == 1
    assert bars[0] == pytest.approx([1.5, 2.6], abs=0.05)
    assert {"a  1.50", "b  2.00", "2.60  d", "3.90  c"} <= set(texts(drawing.figure))
    assert "1.20" in drawing.caption
    assert inside(drawing)


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


def test_the_users_matplotlibrc_changes_nothing(three):
    import matplotlib

    result, drawings = three
    plain = figure_bytes(drawings[0], "svg")
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9, "axes.facecolor": "red"}):
        assert figure_bytes(draw(result)[0], "svg") == plain
