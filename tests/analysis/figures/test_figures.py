"""Figures show the result's own numbers, and hold up under the inputs that break figures."""

import shutil
import subprocess

import numpy as np
import pytest

from analysis.drawings.drawing import figure_bytes, write_figures
from analysis.drawings.fit import short_names
from analysis.drawings.style import house_style
from analysis.write import draw
from tests.analysis.figures.seen import named, random

ASKED = ("design_by_type", "design_figures", "pairs", "ranks")


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
