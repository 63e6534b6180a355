"""The command line: what people type, the whole way with a real encoder, and errors of one line."""

from pathlib import Path

import pytest

from cli.errors import UserError
from evaluation.candidates import configured
from evaluation.command import check_words, run
from tests.started import run_here


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["docs"], "Write key=value"),
        (["run=runs/x", "pooler=eos"], "pooler= has no effect"),
        (["run=runs/none"], "No run folder matches"),
        (["benchmark=MTEB(eng, v3)"], r"Did you mean: MTEB\(eng, v2\)"),
        (["benchmark=[docstrings,moee]"], "must be one name"),
        (["tasks=[SciFct]"], "Did you mean: 'SciFact'"),
        (["benchmark=docstrings", "tasks_dir=x"], "Give one of them"),
        (["evaluation.dims=[64,32]"], "rising whole numbers"),
        (["benchmark=docstrings_smoke", "tasks=[DocsNetworkxSST]"], "Nearest: DocsNetworkx"),
    ],
)
def test_a_mistake_names_the_mend(typed: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(configured(typed))


def test_a_base_that_is_not_bundled_is_scored_on_mteb_unless_tasks_are_named(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    check_words([], "assets/tiny")
    check_words(["benchmark=docstrings_smoke"], "some/base")
    with pytest.raises(UserError, match=r"none of mteb's 41 data sets\. Give benchmark=docstrings or tasks_dir="):
        run(configured(["run=null", "model=qwen2_0_5b"]))
    with pytest.raises(UserError, match="none of mteb's 2 data sets"):
        check_words(["tasks=[STS12,STS13]"], "assets/tiny")
    (tmp_path / "datasets--mteb--sts12-sts").mkdir()
    check_words([], "some/base")  # the cache may have more


def test_a_task_that_fails_is_named_and_the_others_go_on(folder: Path, small_model, tmp_path: Path) -> None:
    (folder / "Graded" / "task.json").write_text('{"name": "Graded", "type": "STS", "main_score": "cosine_sperman"}')
    words = ["run=null", f"model.path={small_model}", "pooler=mean", f"tasks_dir={folder}", "tasks=[Graded,Pairs]"]
    done = run_here("evaluate.py", *words, f"results={tmp_path / 'scores'}", "progress=false")
    assert done.returncode == 1
    assert "/mean-causal-untrained seed=0: mteb computes no cosine_sperman" in done.stderr
    assert "Some scores failed, as listed; the same command goes on" in done.stderr
    assert "PairClassification (1)" in done.stdout
    assert list((tmp_path / "scores").rglob("Pairs.json"))
