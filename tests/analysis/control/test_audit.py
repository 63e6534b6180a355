"""`python -m analysis.control`: the audit of run folders and of the scores beside them."""

import json
from pathlib import Path

import pytest

from analysis.control.__main__ import main
from cli.compose import composed, plain
from cli.errors import UserError
from tests.analysis.manifests import evaluation, manifest, seal, untrained

ROOT = Path(__file__).resolve().parents[3]
CELLS = ("eos-causal", "multilayer-causal", "multilayer-bi")


def write_run(root, design, seed=0, study="s", **changes):
    pooler, attn = design.split("-")
    folder = root / study / design / f"seed{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(seal(manifest(pooler, attn, seed, **changes))))
    return folder


def write_copy(folder, tasks=("STS0", "STS1"), digest="0" * 8, **changes):
    """The copy beside the scores of a run; changes: of its evaluation."""
    value = json.loads((folder / "manifest.json").read_text()) | {"evaluation": evaluation(list(tasks)) | changes}
    study, design = folder.parts[-3:-1]
    copy = folder.parents[1] / "scores" / "results" / f"{study}__{design}" / f"{folder.name}@{digest}" / "run"
    copy.mkdir(parents=True)
    (copy / "manifest.json").write_text(json.dumps(seal(value)))
    return copy


@pytest.fixture
def runs(tmp_path):
    for design in CELLS:
        for seed in (0, 1):
            write_run(tmp_path / "runs", design, seed)
    return tmp_path / "runs"


@pytest.fixture
def audit(monkeypatch, capsys):
    """Return a function: words -> (what was printed, the error or None)."""

    def call(*words):
        monkeypatch.setattr("sys.argv", ["control", *map(str, words)])
        error = None
        try:
            main()
        except UserError as raised:
            error = str(raised)
        return capsys.readouterr().out, error

    return call


def test_a_clean_study(runs, audit):
    text, error = audit(runs)
    assert error is None
    assert text.rstrip().endswith("Controlled: these 3 cells differ only in pooler, attn.")
    for seed in (0, 1):
        line = next(line for line in text.splitlines() if line.startswith(f"- Seed {seed}: identical in all 3 cells: "))
        assert all(word in line for word in ("batch order (", "stream adapter", "stream dropout", "stream head"))
    assert "not only attn differs but also pooler.tokens (last, mean)" in text
    rows = [line.split("|")[1].strip() for line in text.split("## Factors")[0].splitlines() if line.startswith("| ")]
    assert rows[2:] == list(CELLS)


def test_a_planted_difference_is_refused_named_and_allowed(runs, audit):
    for seed in (0, 1):
        write_run(runs, "multilayer-bi", seed, max_length=32)
    text, error = audit(runs)
    assert error.startswith("Not controlled: the 3 designs differ not only in pooler, attn but also in max_length. ")
    assert "| multilayer-bi" in text.split("## What else differs")[1].split("##")[0]
    allowed, error = audit(runs, "allow=[max_length]")
    assert error is None
    assert "differ only in pooler, attn and, as allowed, in max_length." in allowed


def test_half_finished_runs_are_left_out_by_name_and_a_missing_seed_is_a_difference(runs, audit):
    write_run(runs, "mean-bi", 0, _status="running")
    text, error = audit(runs)
    assert error is None
    assert f"- {runs / 's' / 'mean-bi' / 'seed0'} (not finished)" in text
    write_run(runs, "eos-causal", 2)
    assert "but also in seed." in audit(runs)[1]


def test_scores_are_joined_to_their_runs_and_other_texts_are_refused(runs, audit):
    for design in CELLS:
        for seed in (0, 1):
            write_copy(runs / "s" / design / f"seed{seed}")
    text, error = audit(runs)
    assert error is None
    assert "- All 3 scored cells were given identical inputs in 2 of 2 (task, split) pairs." in text
    other = {"inputs": {"STS0 test default": "1" * 64}}
    write_copy(write_run(runs, "mean-bi", 0), **other)
    write_copy(write_run(runs, "mean-bi", 1), **other)
    text, error = audit(runs)
    assert "also in evaluation.inputs.STS0 test default." in error
    assert "in 1 of 2 (task, split) pairs" in text


def test_scores_of_another_training_and_second_scorings_are_left_out(runs, audit):
    folder = runs / "s" / "eos-causal" / "seed0"
    old = write_copy(folder)
    write_run(runs, "eos-causal", 0, _loss=0.5)
    text, _ = audit(runs)
    assert f"- {old.parent} (scores of another training than {folder})" in text
    new = write_copy(folder, digest="1" * 8)
    second = write_copy(folder, digest="2" * 8)
    text, _ = audit(runs)
    assert f"- {second.parent} (a second scoring of {new.parent})" in text


def test_a_copy_stands_for_its_run_where_only_the_scoring_was_asked_otherwise(runs, audit):
    """`evaluate.py evaluation.autocast=fp16` writes its keys into the copy's configuration, not into the run's."""
    names = [(design, seed) for design in CELLS for seed in (0, 1)]
    for name in names:
        asked = {"evaluation": {"autocast": "fp16", "max_length_share": 0.5}, "accelerator": "cpu"}
        write_copy(write_run(runs, *name, **asked))
        write_run(runs, *name)
    text, error = audit(runs)
    assert error is None
    assert "All 3 scored cells were given identical inputs" in text


def test_the_five_designs_as_conf_composes_them_are_controlled(tmp_path, audit):
    """Real configurations, with a reference without any run, which knows neither data nor objective."""
    for k in range(1, 6):
        config = plain(composed("train", [f"design=model{k}"]))
        pooler, attn = config["pooler"]["name"], config["attn"]["name"]
        write_copy(write_run(tmp_path, f"{pooler}-{attn}", _config=config))
    text, error = audit(tmp_path)
    assert error is None
    assert "these 5 cells differ only in pooler, attn." in text
    reference = untrained(manifest("mean", "bi", _config=plain(composed("evaluate", ["pooler=mean", "attn=bi"]))))
    folder = tmp_path / "s" / "scores" / "results" / "s__mean-bi-untrained" / "seed0@00000000" / "run"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(seal(reference | {"evaluation": evaluation(["STS0"])})))
    text, error = audit(tmp_path)
    assert error is None
    assert "these 6 cells differ only in pooler, attn, training." in text
