"""Names whose letters the usual font lacks are drawn with another font, where there is one."""

import warnings

import pytest

from analysis.drawings.drawing import figure_bytes
from analysis.drawings.style import USUAL, absent, families, undrawn
from analysis.write import draw

SCRIPT_G, NOBODY = "\u210a", "\U000f0000"  # STIX has the first, which comes with matplotlib; the second is private


def test_the_usual_font_alone_where_it_has_all():
    assert families(["plain", "naïve модель αβ"]) == (USUAL,)
    assert absent(["plain", "модель"]) == frozenset()


def test_another_font_for_what_it_lacks():
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    assert absent([f"a{SCRIPT_G}"]) == {SCRIPT_G}
    first, *others = families([f"a{SCRIPT_G}"])
    assert first == USUAL
    assert len(others) == 1
    assert FT2Font(findfont(others[0])).get_char_index(ord(SCRIPT_G))
    assert undrawn([SCRIPT_G, NOBODY]) == [NOBODY], "the font of last resort, which has boxes, does not count"


@pytest.fixture
def named(analyse_words, tmp_path):
    """Return a function: name of a design -> result of it and a plain one."""

    def analyse(name):
        path = tmp_path / "s.csv"
        rows = [f"{m},STS,STS{t},{0.3 + 0.02 * k * (t % 3)}" for k, m in enumerate((name, "plain")) for t in range(8)]
        path.write_text("\n".join(["model,type,task,score", *rows]))
        return analyse_words(f"scores={path}", "figures=true")

    return analyse


def test_figures_are_drawn_with_it_and_without_warnings(named):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (f"{SCRIPT_G}-1", f"{NOBODY}-1"):
            result = named(name)
            drawings = draw(result)
            assert all(figure_bytes(drawing, "png") for drawing in drawings)
            forest = next(drawing for drawing in drawings if drawing.name == "forest")
            (label,) = [t for t in forest.figure.axes[0].get_yticklabels() if name in t.get_text()]
            assert label.get_fontfamily() == list(families([name]))
            assert any("no font of this machine" in note for note in result.notes) == (NOBODY in name)
