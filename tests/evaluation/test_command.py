"""The command line: what people type, the whole way with a real encoder, and errors of one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from cli.compose import CONF
from cli.errors import UserError
from evaluation.candidates import configured
from evaluation.command import run
from tests.started import start


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["docs"], "no key=value"),
        (["benhcmark=docs"], "Nearest: benchmark"),
        (["run=runs/x", "pooler=eos"], "pooler= has no effect"),
        (["run=runs/x", "precision=fp32"], "precision= has no effect"),
        (["run=runs/x", "token_budget=64"], "token_budget= has no effect"),
        (["run=runs/none"], "No run folder matches"),
        (["pooler=maen"], "Nearest: mean"),
        (["instructions=tabel"], "instructions=tabel must be one of"),
        (["benchmark=MTEB(eng, v3)"], r"Did you mean: MTEB\(eng, v2\)"),
        (["benchmark=dcos"], "Ours: .*docs"),
        (["tasks=[SciFct]"], "Did you mean: 'SciFact'"),
        (["benchmark=docs", "tasks_dir=x"], "Give one of them"),
        (["evaluation.dims=[64,32]"], "rising whole numbers"),
        (["benchmark=docs_smoke", "tasks=[DocsNetworkxSST]"], "Nearest: DocsNetworkx"),
        (["threads=0"], "threads=0 must be a whole number, at least 1; null: one for each core"),
        (["pooler=lastlayer", "pooler.num_queries=0"], "pooler.num_queries=0 must be a whole number"),
        (["evaluation.max_length_share=-1"], "max_length_share=-1 must be a number, at least 1e-06 and at most 1"),
        (["accelerator=tpu"], "accelerator=tpu must be one of auto, cpu, gpu, cuda"),
        (["run=runs/none", "benchmark.queries=some"], "benchmark.queries=some must be a whole number"),
    ],
)
def test_a_mistake_names_the_mend(typed: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(configured(typed))


def test_the_whole_way_with_a_real_decoder(hub_model: Path, tmp_path: Path, capsys) -> None:
    words = ["run=null", "pooler=mean", "attn=causal", f"model.path={hub_model}", "benchmark=docs_smoke"]
    words += [f"runs_dir={tmp_path}"]
    run(configured([*words, "progress=false"]))
    said = capsys.readouterr().out
    assert "1 encoders x 7 tasks" in said
    assert "tokens/s" in said
    scores = list(tmp_path.glob("embedded/scores/results/embedded__mean-causal-untrained/seed0@*/Docs*.json"))
    assert len(scores) == 7


@pytest.mark.slow
def test_help_imports_nothing_slow() -> None:
    slow = "sorted({'mteb', 'torch', 'datasets'} & set(sys.modules))"
    code = f"import sys, runpy; sys.argv[1:] = ['--help']; runpy.run_path('evaluate.py')['main'](); print({slow})"
    done = subprocess.run([sys.executable, "-c", code], cwd=CONF.parent, capture_output=True, text=True, check=True)
    assert "benchmark=" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_an_error_is_one_line_with_exit_code_2() -> None:
    done = start("evaluate.py", "run=nowhere")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
