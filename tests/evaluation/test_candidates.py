"""run=, untrained= -> what is scored, and what is refused."""

import json
from pathlib import Path

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from evaluation.candidates import candidates, configured
from evaluation.variants import read_by
from records.manifest import MANIFEST_VERSION, sealed


def make_run(root: Path, cell: str = "eos-causal", seed: int = 0, **changes) -> Path:
    folder = root / "bundled" / cell / f"seed{seed}"
    folder.mkdir(parents=True)
    pooler, attn = cell.split("-")
    manifest = {"study": "bundled", "pooler": pooler, "attn": attn, "seed": seed, "status": "finished",
                "manifest_version": MANIFEST_VERSION, "config": {"seed": seed}, "parameters": {"head": 3}}  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(sealed(manifest | changes)))
    return folder


def ask(**keys) -> list:
    cfg = plain(composed("evaluate"))
    return candidates(cfg | {key: str(v) if isinstance(v, Path) else v for key, v in keys.items()})


def test_a_glob_finds_runs_in_path_order(tmp_path: Path) -> None:
    for cell in ("mean-bi", "eos-causal"):
        make_run(tmp_path, cell)
    found = ask(run=f"{tmp_path}/*/*/seed*")
    assert [c.name for c in found] == ["bundled/eos-causal", "bundled/mean-bi"]
    assert {c.results for c in found} == {tmp_path / "bundled" / "scores"}


def test_before_and_after(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    also, only = ask(run=folder, untrained="also"), ask(run=folder, untrained="only")
    assert [c.name for c in also] == ["bundled/eos-causal-untrained", "bundled/eos-causal"]
    assert [c.name for c in only] == ["bundled/eos-causal-untrained"]
    assert only[0].manifest["status"] == "untrained"
    assert only[0].manifest["parameters"] == {"head": 3}


def test_without_a_run_the_groups_describe_the_encoder(tmp_path: Path) -> None:
    cfg = plain(composed("evaluate", ["pooler=mean", "attn=bi", "seed=4", f"runs_dir='{tmp_path}'"]))
    (reference,) = candidates(cfg)
    assert reference.title == "bundled/mean-bi-untrained seed=4"
    assert reference.results == tmp_path / "bundled" / "scores"
    assert not reference.trained


@pytest.mark.parametrize("asked", [["pooler=moee"], ["variants=[moee:sum]"]])
def test_how_tokens_are_read_is_in_the_name_where_it_is_not_as_ever(asked, tmp_path: Path) -> None:
    """Raw and standardised vectors of one encoder are two models to mteb and to tables."""
    words = ["model=tiny_moe", f"runs_dir='{tmp_path}'", *asked]
    choices = ([], ["reference_fault.standardise=corpus"], ["reference_fault.pool_eos=false"], ["max_length=32"])
    names = []
    for choice in choices:
        cfg = configured([*words, *choice, "reference_fault.pool_bos=false"])
        found = candidates(cfg)
        names += [c.name for c in (read_by(found, cfg["variants"]) if cfg["variants"] else found)]
    standard = "+reference_fault.standardise-corpus"
    marks = "", standard, "+reference_fault.pool_eos-false", "+max_length-32"
    assert names == [f"bundled+model-tiny_moe{mark}/moee-causal-untrained" for mark in marks]


def test_a_study_keeps_what_deviates_in_its_name(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    moved = tmp_path / "bundled+lora.r-8"
    folder.parents[1].rename(moved)
    (found,) = ask(run=f"{moved}/*/*")
    assert found.name == "bundled+lora.r-8/eos-causal"
    assert found.manifest["study"] == "bundled+lora.r-8"


def test_what_is_not_the_default_counts_in_place_of_what_a_run_says(tmp_path: Path) -> None:
    said = plain(composed("train", ["reference_fault=all", "accelerator=cpu"]))
    folder = make_run(tmp_path, config=said)
    typed = ["instructions=none", "evaluation.autocast=fp32", "accelerator=gpu"]
    found = [candidates(configured([f"run={folder}", *typed[:k]]))[0].manifest["config"] for k in range(4)]
    assert found[0] == said
    assert said["evaluation"]["instructions"] == "table"
    assert found[1]["evaluation"] == {**said["evaluation"], "instructions": "none"}
    assert found[2]["evaluation"] == {**said["evaluation"], "instructions": "none", "autocast": "fp32"}
    assert found[3] == {**found[2], "accelerator": "gpu"}


def test_a_default_that_is_typed_counts_too(tmp_path: Path) -> None:
    """A run with the reference fault of half the length can be scored on whole texts, by the CPU's own default."""
    folder = make_run(tmp_path, config=plain(composed("train", ["reference_fault=all", "accelerator=cpu"])))
    typed = [f"run={folder}", "evaluation.max_length_share=1.0", "accelerator=auto"]
    (found,) = candidates(configured(typed), typed)
    assert (found.manifest["config"]["evaluation"]["max_length_share"], found.manifest["config"]["accelerator"]) == (
        1.0,
        "auto",
    )


def test_an_unfinished_run_is_skipped_by_name_among_several(tmp_path: Path, capsys) -> None:
    make_run(tmp_path, "eos-causal")
    broken = make_run(tmp_path, "mean-causal", status="running")
    assert [c.name for c in ask(run=f"{tmp_path}/*/*/*")] == ["bundled/eos-causal"]
    assert f"skipped: {broken} is not finished (status running)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": "running"}, "is not finished"),
        ({"manifest_version": 99}, "is not of version"),
        ({"config": None, "status": "nan"}, "status nan"),
    ],
)
def test_the_only_match_must_be_a_finished_run(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ask(run=make_run(tmp_path, **changes))
