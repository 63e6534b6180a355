"""The card of an exported folder: scores, figures and curve of the loss, as they are and no others."""

import re
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard
from mteb import TaskMetadata, TaskResult, get_task

from encoders.export import figures
from encoders.export.__main__ import main
from encoders.export.card import KINDS
from encoders.export.figures import write_figures
from evaluation.results import describe_tasks
from records.atomic import write_json
from records.manifest import sealed
from records.run_folder import RunFolder


def test_scores_stand_in_the_card_as_mteb_writes_them(awake_run, tmp_path):
    run, scores, results = awake_run("eos", "bi"), tmp_path / "scores", []
    place = scores / "results" / "tests__eos-bi" / "seed0@1"
    for name, main_score in (("STS12", 0.25), ("NFCorpus", 0.5), ("Banking77Classification", 0.75)):
        entry = {"hf_subset": "default", "languages": ["eng-Latn"], "main_score": main_score}
        kept = {"dataset_revision": get_task(name).metadata.revision, "task_name": name, "mteb_version": "2"}
        results.append(TaskResult.from_dict({**kept, "scores": {"test": [entry]}, "evaluation_time": 1.0}))
        (place / "run").mkdir(parents=True, exist_ok=True)
        results[-1].to_disk(place / f"{name}.json")
    describe_tasks(scores, [result.task for result in results])
    write_json(place / "run" / "manifest.json", sealed({**RunFolder(run).manifest(), "evaluation": {}}))
    main([f"run={run}", f"to={tmp_path / 'model'}", f"scores={scores}"])
    card = ModelCard.load(tmp_path / "model" / "README.md")
    wanted = [entry for result in results for entry in result.get_hf_eval_results()]
    in_order = sorted(wanted, key=lambda result: result.dataset_name)
    assert sorted(card.data.eval_results, key=lambda result: result.dataset_name) == in_order
    assert card.data.model_name == "model"
    assert RunFolder(run).manifest()["manifest_sha256"] in card.text
    assert _figures(card, tmp_path / "model") == ["figures/scores.png"]
    assert "Means by type: Classification 0.7500, Retrieval 0.5000, STS 0.2500." in card.text
    assert "No curve of the loss: the run's folder holds no log of it." in card.text
    for kind, of_the_hub in KINDS.items():
        assert TaskMetadata._hf_task_type(SimpleNamespace(type=kind)) == [of_the_hub]


def _figures(card, folder):
    """The figures that a card shows, all of which must stand in the folder, and no others."""
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", card.text)
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.png")) == sorted(shown)
    assert all((folder / path).read_bytes().startswith(b"\x89PNG") for path in shown)
    return shown


def test_the_loss_of_a_run_stands_in_the_card(awake_run, tmp_path):
    """Drawn as logged: each step, and the running mean, against the literal one."""
    log, losses = awake_run("eos", "bi") / "logs" / "attempt0" / "metrics.csv", [4.0, 3.0, 2.5, 2.0, 1.5, 1.0]
    log.parent.mkdir(parents=True)
    log.write_text("".join(["loss,step\n", *(f"{loss},{step}\n" for step, loss in enumerate(losses))]))
    said = write_figures(log.parents[2], {}, tmp_path)
    assert _figures(SimpleNamespace(text=said), tmp_path) == ["figures/loss.png"]
    assert "Loss over 6 steps, 4.000 at first and 2.000 at the end." in said
    assert "No figure of scores: none were given for this card." in said
    steps, means = figures._loss(losses).figure.axes[0].lines
    assert steps.get_ydata().tolist() == losses
    assert means.get_ydata().tolist() == pytest.approx([4.0, 3.5, 9.5 / 3, 11.5 / 4, 13 / 5, 10 / 5])
