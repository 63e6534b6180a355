"""Per-item scores beside the predictions: their mean, or the statistic over them, is mteb's own score."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from evaluation.scoring import Options, Outcome, score
from evaluation.tasks.chosen import mteb_task
from evaluation.tasks.folder import folder_tasks

NAMES = ["Asked", "Classes", "Clusters", "Graded", "Pairs", "Ranked"]
FULL = "apple pear plum lime"


@pytest.fixture
def scored(folder: Path, candidate) -> Outcome:
    """A bag of words is perfect on the small tasks, so they are made harder."""
    queries = [
        {"_id": f"q{i}", "text": text} for i, text in enumerate(["apple fruit", "saw", "plum lime", "clamp", "x"])
    ]
    (folder / "Asked" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (folder / "Asked" / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\td{j}\t1\n" for i in range(5) for j in (3 * i, 3 * i + 1))
    )
    texts = [(FULL, 2), ("apple", 1), ("lime hammer", 3), ("saw", 0), ("pear saw drill", 4), ("apple pear", 2)]
    rows = [{"sentence1": FULL, "sentence2": text, "score": grade} for text, grade in texts]
    (folder / "Graded" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "Pairs" / "test.jsonl"
    pairs = [json.loads(line) for line in path.read_text().splitlines()]
    hard = [{**row, "labels": int(k % 3 == 0)} for k, row in enumerate(pairs)]
    path.write_text("".join(json.dumps(row) + "\n" for row in hard))
    tasks = [mteb_task(d) for d in folder_tasks(folder, NAMES)]
    return score(candidate(), tasks, Options(predictions=True))


def entry(outcome: Outcome, task: str) -> dict:
    place = outcome.folder.parents[2] / "predictions" / outcome.folder.parent.name / outcome.folder.name
    return json.loads((place / f"{task}_items.json").read_text())["splits"]["test"]["default"]


def mtebs(outcome: Outcome, task: str) -> dict:
    return json.loads((outcome.folder / f"{task}.json").read_text())["scores"]["test"][0]


def test_the_items_give_mtebs_scores(scored: Outcome) -> None:
    for task, statistic in (("Asked", "ndcg_at_10"), ("Ranked", "map_at_1000"), ("Classes", "accuracy")):
        items = entry(scored, task)
        assert (items["statistic"], items["kind"]) == (statistic, "mean")
        assert len(items["ids"]) == len(items["values"]) > 4
        assert np.mean(items["values"]) == pytest.approx(mtebs(scored, task)["main_score"], abs=1e-5)
    asked = entry(scored, "Asked")
    assert len(set(asked["values"])) > 2
    assert asked["ids"] == [f"q{i}" for i in range(5)]
    items = entry(scored, "Graded")
    assert items["kind"] == "spearman"
    assert items["truth"] == [2, 1, 3, 0, 4, 2]
    found = spearmanr(items["predicted"], items["truth"]).statistic
    assert found == pytest.approx(mtebs(scored, "Graded")["cosine_spearman"], abs=1e-6)
    for task in ("Clusters", "Pairs"):  # whose score is no mean or correlation of items
        with pytest.raises(FileNotFoundError):
            entry(scored, task)


def test_a_score_without_predictions_is_made_again(scored: Outcome, folder: Path, candidate) -> None:
    tasks = [mteb_task(d) for d in folder_tasks(folder, ["Asked", "Graded"])]
    place = scored.folder.parents[2] / "predictions" / scored.folder.parent.name / scored.folder.name
    (place / "Graded_predictions.json").unlink()
    again = score(candidate(), tasks, Options(predictions=True))
    assert again.computed == 1
    assert (place / "Graded_predictions.json").is_file()


def test_saving_predictions_changes_no_score(scored: Outcome, folder: Path, candidate, tmp_path: Path) -> None:
    tasks = [mteb_task(d) for d in folder_tasks(folder, NAMES)]
    plain = score(candidate(results=tmp_path / "plain"), tasks, Options())
    assert plain.scores == scored.scores
    assert not any(task.data_loaded for task in tasks)
    assert not (tmp_path / "plain" / "predictions").exists()
