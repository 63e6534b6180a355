"""A question added as one file shows in every rendering: tables, files, figures, notes, verdict, methods, report."""

import json
import shutil
from pathlib import Path

import pytest

from tests.started import start

ROOT = Path(__file__).resolve().parents[2]
QUESTION = '''
"""How large is the largest difference on one task?"""

import pandas as pd
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer, Material

PLACE = 105


def answer(material: Material) -> Answer:
    spread = material.matrix.max(axis=1) - material.matrix.min(axis=1)
    frame = pd.DataFrame({"task": spread.index, "spread": spread.to_numpy()})
    rows = [[Cell(name), Cell(f"{value:.3f}")] for name, value in spread.items()]

    def draw() -> list[Drawing]:
        figure = Figure(figsize=(3, 2), layout="constrained")
        figure.add_subplot().bar(range(len(spread)), spread)
        return [Drawing("spread", "Spread", "The spread of each task.", "Bars.", figure)]

    return Answer(
        "spread",
        grids=[Grid("spread", "The spread of each task.", ["Task", "Spread"], rows, title="Spread of tasks")],
        draw=draw,
        frames={"spread": frame},
        notes=["The spread is that of the designs compared."],
        about={pair: "Their spread is told." for pair in zip(material.pairs["first"], material.pairs["second"])},
        methods=["Spreads were taken per task [@demsar2006]."],
    )
'''


@pytest.mark.slow
def test_one_file_is_all(tmp_path):
    for name in ("analysis", "cli", "records", "conf"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "analysis" / "questions" / "spread.py").write_text(QUESTION)
    rows = [f"{m},t{k},STS,{0.4 + k / 50 + 0.03 * (m == 'b'):.2f}" for m in "ab" for k in range(8)]
    (tmp_path / "scores.csv").write_text("\n".join(["model,task,type,score", *rows]))
    done = start("-m", "analysis", "scores=scores.csv", "out=tables", "report=true", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "tables"
    for name in ("table.md", "table.tex", "report.html"):
        text = (out / name).read_text()
        assert "The spread is that of the designs compared." in text, name
        assert "Their spread is told." in text, name
        assert "The spread of each task." in text, name
    assert "Spread of tasks" in done.stdout
    assert (out / "spread.csv").read_text().startswith("task,spread\nt0,0.0")
    assert (out / "figures" / "spread.pdf").stat().st_size
    assert "Spreads were taken per task" in (out / "methods.tex").read_text()
    assert "demsar2006" in (out / "references.bib").read_text()
    (section,) = [s for s in json.loads((out / "result.json").read_text())["sections"] if s["name"] == "spread"]
    assert len(section["tables"]["spread"]["data"]) == 8
