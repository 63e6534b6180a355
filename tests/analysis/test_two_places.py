"""Two clones of one study, under other names and with files written in another order, give tables of equal bytes."""

import shutil
from pathlib import Path

import pytest

from analysis.analyse import analyse
from analysis.cli import read_arguments
from analysis.write import write_files

SCORES = Path("runs/s/scores")


@pytest.fixture
def clones(study, spread_scores, tmp_path) -> list[Path]:
    """Copies of one study; the files of the second were written last to first, so that its listings are others."""
    for k, design in enumerate(("eos-causal", "multilayer-bi")):
        for seed in range(3):
            study.run(design, spread_scores(0.3 + 0.1 * k, 0.001 * (1 + seed)), seed=seed)
    files = sorted(path.relative_to(study.root) for path in study.root.rglob("*") if path.is_file())
    roots = [tmp_path / "one", tmp_path / "somewhere else" / "other"]
    for root, order in zip(roots, (files, files[::-1]), strict=True):
        for file in order:
            place = root / SCORES / file
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(study.root / file, place)
    return roots


@pytest.mark.parametrize("place", ["", "{root}/"])  # typed as paths of the clone, and of the machine
def test_two_clones_give_equal_bytes(clones, monkeypatch, place):
    written = []
    for root in clones:
        monkeypatch.chdir(root)
        words = [f"{key}={place.format(root=root)}{path}" for key, path in {"scores": SCORES, "out": "tables"}.items()]
        settings = read_arguments([*words, "report=true", "figures=false"])
        write_files(analyse(settings), Path("tables"))
        written.append({path.name: path.read_bytes() for path in (root / "tables").iterdir()})
    one, other = written
    assert {"table.md", "table.tex", "scores.csv", "pairs.csv", "report.html", "result.json"} <= one.keys()
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
    assert not [name for name, text in one.items() for root in clones if str(root).encode() in text]
