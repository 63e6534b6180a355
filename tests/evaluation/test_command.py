"""The command line: what people type, the whole way with a real encoder, and errors of one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from cli.compose import CONF, composed
from cli.errors import UserError
from evaluation.candidates import configured
from evaluation.command import run
from evaluation.words import evaluate_words
from tests.started import start


@pytest.mark.parametrize(
    ("typed", "key", "value"),
    [
        (["benchmark=MTEB(eng, v2)"], "benchmark.name", "MTEB(eng, v2)"),
        (["benchmark='MTEB(eng, v2)'"], "benchmark.name", "MTEB(eng, v2)"),
        (["benchmark=docs_dev"], "benchmark.name", "docs_dev"),
        ([], "benchmark.name", "docs"),
        (["benchmark=docs", "benchmark.queries=7"], "benchmark.queries", 7),
        (["run=runs/a+lora.r-8/eos-causal/seed0"], "run", "runs/a+lora.r-8/eos-causal/seed0"),
        (["run=['a b','c']"], "run", ["a b", "c"]),
        (["run=it's here"], "run", "it's here"),
        (["run=null", "pooler=mean"], "pooler.name", "mean"),
        (["tasks=[SciFact,STS22.v2]"], "tasks", ["SciFact", "STS22.v2"]),
        (["tasks_dir=/a b/c=d"], "tasks_dir", "/a b/c=d"),
    ],
)
def test_what_is_typed_is_understood(typed: list[str], key: str, value: object) -> None:
    cfg = composed("evaluate", evaluate_words(typed))
    for part in key.split("."):
        cfg = cfg[part]
    assert cfg == value


def test_tasks_alone_are_not_narrowed_to_docs() -> None:
    assert "benchmark" not in composed("evaluate", evaluate_words(["tasks=[SciFact]"]))
    assert "benchmark" not in composed("evaluate", evaluate_words(["tasks_dir=x"]))


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
        (["threads=two"], "threads=two must be a whole number"),
        (["max_length=-5"], "max_length=-5 must be a whole number, at least 4"),
        (["max_length=long"], "max_length=long must be a whole number"),
        (["token_budget=0"], "token_budget=0 must be a whole number, at least 1"),
        (["seed=one"], "seed=one must be a whole number"),
        (["pooler=lastlayer", "pooler.num_queries=0"], "pooler.num_queries=0 must be a whole number"),
        (["pooler=lastlayer", "pooler.num_heads=x"], "pooler.num_heads=x must be a number"),
        (["pooler=multilayer", "head.mlp_factor=-1"], "head.mlp_factor=-1 must be a number"),
        (["evaluation.max_length_share=-1"], "max_length_share=-1 must be a number, at least 1e-06 and at most 1"),
        (["evaluation.max_length_share=half"], "evaluation.max_length_share=half must be a number"),
        (["padding_side=middle"], "padding_side=middle must be one of right, left"),
        (["accelerator=tpu"], "accelerator=tpu must be one of auto, cpu, gpu, cuda"),
        (["precision=fp8"], "precision=fp8 must be one of auto, bf16, mixed, fp32"),
        (["benchmark.documents=-5"], "benchmark.documents=-5 must be a whole number, at least 2"),
        (["run=runs/none", "benchmark.queries=some"], "benchmark.queries=some must be a whole number"),
    ],
)
def test_a_mistake_names_the_mend(typed: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(configured(typed))


def test_the_whole_way_with_a_real_decoder(hub_model: Path, tmp_path: Path, capsys) -> None:
    words = [
        "run=null",
        "pooler=mean",
        "attn=causal",
        f"model.path={hub_model}",
        "benchmark=docs_smoke",
        f"runs_dir={tmp_path}",
    ]
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
