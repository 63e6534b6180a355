"""The command as a user runs it: files, errors in one line, no torch, nothing in the working folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.cli import read_arguments
from cli.compose import own_keys
from cli.errors import UserError, guard

ROOT = Path(__file__).resolve().parents[2]


def run(*words, cwd, code=None):
    start = [sys.executable, "-c", code] if code else [sys.executable, "-m", "analysis"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([*start, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "in" / "wide.csv"
    path.parent.mkdir()
    rows = [f"{m},{','.join(str(50 + k + 2 * j) for k in range(8))}" for j, m in enumerate("abc")]
    tasks = "SciFact,ArguAna,FiQA2018,NFCorpus,STS12,STS13,STS14,STS15"
    path.write_text("\n".join([f"model,{tasks}", *rows]) + "\n")
    return path


@pytest.mark.slow
def test_the_command_writes_prints_and_imports_little(wide, tmp_path):
    here = tmp_path / "cwd"
    here.mkdir()
    code = (
        "import sys; sys.argv[0] = 'analysis'\n"
        "from analysis.__main__ import main\n"
        "main()\n"
        "print('LOADED', *sorted({n.split('.')[0] for n in sys.modules}))\n"
    )
    done = run(f"scores={wide}", cwd=here, code=code)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split("LOADED")[1].split())
    ours = {p.name for p in ROOT.iterdir() if p.is_dir()} | {"train", "evaluate"}
    assert not loaded & {"torch", "mteb", "transformers", "matplotlib"}
    assert loaded & ours <= {"analysis", "cli", "records"}
    assert list(here.iterdir()) == []
    out = wide.parent / "wide-analysis"
    names = {"means.csv", "pairs.csv"}
    assert {*names, "result.json", "scores.csv", "table.md", "table.tex"} <= {p.name for p in out.iterdir()}
    assert str(out / "pairs.csv") in done.stdout
    pairs = pd.read_csv(out / "pairs.csv")
    assert {"p_wilcoxon", "n_zero", "w_plus", "w_minus", "p", "p_holm", "rank_biserial"} <= set(pairs.columns)
    assert pairs["mean_difference"].round(12).tolist() == [0.02, 0.04, 0.02] * 3
    assert len(pd.read_csv(out / "scores.csv")) == 24


def test_every_key_is_an_argument():
    assert {*vars(read_arguments([f"scores={ROOT}"]))} == {*own_keys("analysis")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "scores= is missing"),
        (["score=x"], "no key 'score' in conf/analysis.yaml. Nearest: scores"),
        (["models=a,b"], r"Write a list: models=\[a,b\]"),
        (["missing=drop"], "missing=drop must be one of auto, fail"),
        (["out="], "out= is empty"),
        (["alpha=0"], "alpha=0 must be a number, at least 1e-06 and below 1"),
    ],
)
def test_bad_words(words, message, tmp_path):
    rest = [f"scores={tmp_path}"] if not any(w.startswith("scores") for w in words) and words else []
    with pytest.raises(UserError, match=message):
        read_arguments([*words, *rest])


def test_paths_are_taken_as_typed(tmp_path):
    odd = tmp_path / "seed0, it's (new)"
    odd.mkdir()
    assert read_arguments([f"scores={odd}"]).scores == (odd,)
    assert read_arguments([f"scores=[{tmp_path},{tmp_path}]", "out=a b"]).out == Path("a b")
    assert read_arguments([f"scores={tmp_path}", "against=OLMoE, PromptEOL, HS"]).against == "OLMoE, PromptEOL, HS"


def test_a_folder_that_cannot_be_written(wide, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setattr("sys.argv", ["analysis", f"scores={wide}", f"out={out}"])
        with pytest.raises(SystemExit) as left:
            guard(main)
        assert left.value.code == 2
        assert str(tmp_path / "file") in capsys.readouterr().err


def test_files_of_an_earlier_analysis_go_and_those_of_the_reader_stay(wide, tmp_path, monkeypatch):
    out, names = tmp_path / "out", []
    for words in (["report=true", "figures=false"], ["types=[STS]", "figures=false"]):
        monkeypatch.setattr("sys.argv", ["analysis", f"scores={wide}", f"out={out}", *words])
        main()
        (out / "mine.txt").touch()
        names.append({str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()} - {"mine.txt"})
        assert names[-1] == set(json.loads((out / "result.json").read_text())["files"])
    assert "report.html" in names[0] - names[1]
    assert (out / "mine.txt").is_file()
    (out / "result.json").write_text('{"files": ["../in/wide.csv"]}')
    main()
    assert wide.is_file(), "a name that leads out of the folder is none of ours"
