"""The command line: what people type, the whole way with a real encoder, and errors of one line."""

from pathlib import Path

import pytest

from cli.errors import UserError
from evaluation.candidates import configured
from evaluation.command import run


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["docs"], "no key=value"),
        (["benhcmark=docs"], "Nearest: benchmark"),
        (["run=runs/x", "pooler=eos"], "pooler= has no effect"),
        (["run=runs/none"], "No run folder matches"),
        (["pooler=maen"], "Nearest: mean"),
        (["instructions=tabel"], "instructions=tabel must be one of"),
        (["benchmark=MTEB(eng, v3)"], r"Did you mean: MTEB\(eng, v2\)"),
        (["benchmark=dcos"], "Ours: .*docs"),
        (["tasks=[SciFct]"], "Did you mean: 'SciFact'"),
        (["benchmark=docs", "tasks_dir=x"], "Give one of them"),
        (["evaluation.dims=[64,32]"], "rising whole numbers"),
        (["benchmark=docs_smoke", "tasks=[DocsNetworkxSST]"], "Nearest: DocsNetworkx"),
        (["pooler=lastlayer", "pooler.num_queries=0"], "pooler.num_queries=0 must be a whole number"),
        (["accelerator=tpu"], "accelerator=tpu must be one of auto, cpu, gpu, cuda"),
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
