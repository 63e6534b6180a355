"""The table of recipes: seeds averaged, the best of each design set off among those with as many seeds."""

import json

from benchmarks.sweeps.recipe import lines, read


def scored(root, study, cell, seed, value):
    folder = root / study / "scores" / "results" / f"{study}__{cell}" / f"seed={seed}@0"
    folder.mkdir(parents=True)
    entry = {"hf_subset": "default", "languages": ["eng-Latn"], "main_score": value}
    for task, shift in (("DocsA", 0.1), ("DocsB", -0.1)):
        scores = {"test": [entry | {"main_score": value + shift}]}
        (folder / f"{task}.json").write_text(json.dumps({"task_name": task, "scores": scores}))


def test_best_of_each_design_over_its_seeds(tmp_path):
    for seed, value in enumerate((0.4, 0.5)):
        scored(tmp_path, "s,objective.lr=0.001", "eos-bi", seed, value)
        scored(tmp_path, "s", "eos-bi", seed, value + 0.01)
    scored(tmp_path, "s,objective.lr=0.004", "eos-bi", 0, 0.9)  # one seed alone: not comparable
    scored(tmp_path, "s,pooler.tokens=all", "multilayer-bi", 0, 0.3)
    head, _, *rows = lines(read(tmp_path))
    assert head == "| recipe | eos-bi | multilayer-bi,pooler.tokens=all | mean |"
    assert rows == [
        "| s,objective.lr=0.004 | 0.9000 (1 of 2 seeds) |  | 0.9000 |",
        "| s,objective.lr=0.001 | 0.4500 |  | 0.4500 |",
        "| s | **0.4600** | **0.3000** | 0.3800 |",
    ]
