"""The report shows what `python -m representation` wrote, as written, and refuses anything else in one line."""

import json

import pandas as pd
import pytest
from matplotlib.figure import Figure

from analysis.cli import read_arguments
from analysis.drawings.drawing import Drawing
from analysis.render import Section, Table
from analysis.report.page import report_page, representation_parts
from analysis.settings import Settings
from cli.errors import UserError
from representation.write import write_section

NASTY = '<script>alert("x")</script>'


@pytest.fixture
def folder(tmp_path):
    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([0, 1], [0, 1])
    frame = pd.DataFrame({"Encoder": [NASTY], "Value": [-0.1]})
    table = Table("layers-toy", "A toy table", "What it is.", frame, footnotes=("a: a footnote",))
    drawing = Drawing("layers_line", "A line", f"Over {NASTY}.", figure)
    place = tmp_path / "why"
    frames = {"layers_values": pd.DataFrame({"x": [1]})}
    write_section(Section("layers", "Layers", [table], lambda: [drawing], frames, ["A note."]), place, "two encoders")
    return place


@pytest.fixture
def wide(tmp_path):
    tasks = "SciFact,ArguAna,FiQA2018,NFCorpus,STS12,STS13,STS14,STS15"
    rows = [f"m{m},{','.join(str(0.3 + 0.01 * (k + m)) for k in range(8))}" for m in range(3)]
    (tmp_path / "wide.csv").write_text("\n".join([f"model,{tasks}", *rows]) + "\n")
    return f"scores={tmp_path / 'wide.csv'}"


def test_sections_have_tables_figures_and_notes(folder, wide, analyse_words):
    result = analyse_words(wide, "report=true", f"representation={folder}")
    page = report_page(result, {})
    section = page.partition('id="representation-layers"><summary><h2>Layers</h2>')[2].partition("<h2")[0]
    for part in ("two encoders", 'id="table-layers-toy"', "a: a footnote", "\N{MINUS SIGN}0.100", "A note."):
        assert part in section
    assert '<img src="data:image/svg+xml;base64,' in section
    assert 'width="192" height="96"' in section
    assert "layers_line.pdf" not in section, "beside another page"
    assert NASTY not in page
    without = report_page(analyse_words(wide, "report=true"), {})
    assert 'id="representation-' not in without


@pytest.mark.parametrize(
    "held",
    [
        "{",
        "[]",
        json.dumps({"version": 1, "sections": [{"name": "layers"}]}),
        json.dumps({"version": 1, "sections": [{"name": "a", "title": "", "over": "", "tables": [{"rows": 3}]}]}),
    ],
)
def test_another_file_is_refused(folder, held):
    (folder / "sections.json").write_text(held)
    with pytest.raises(UserError, match=r"sections\.json.* (no JSON object|cannot be read)"):
        representation_parts(Settings(scores=(), representation=folder))


def test_a_wrong_folder_or_no_report_is_refused(folder, wide):
    with pytest.raises(UserError, match=r"holds no sections.json. Name what"):
        read_arguments([wide, "report=true", f"representation={folder.parent}"])
    with pytest.raises(UserError, match=r"Add report=true"):
        read_arguments([wide, f"representation={folder}"])
    assert read_arguments([wide, "report=true", f"representation={folder}"]).representation == folder
