"""Per-item scores beside mteb's saved predictions: what a test within one task needs, without mteb.

<results>/predictions/<study>__<design>/<revision>/<task>_predictions.json   mteb's own: no truth in it
                                              .../<task>_items.json          written here
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from records.atomic import write_text

# Main score of a retrieval task -> the name of the same measure for one query in pytrec_eval, mteb's library for it.
MEASURE = re.compile(r"(ndcg|map|recall|precision|hit_rate)_at_(\d+)")
TREC = {
    "ndcg": "ndcg_cut_{}",
    "map": "map_cut_{}",
    "recall": "recall_{}",
    "precision": "P_{}",
    "hit_rate": "success_{}",
}
Item = dict[str, Any]


def write_items(folder: Path, task: Any) -> Path | None:
    """Write `<task>_items.json` from the predictions in `folder` and the truth in the loaded `task`; return its path.

    {"task", "type", "dataset_revision", "splits": {split: {subset: entry}}}; an entry has the `statistic`, its `kind`
    and, one a item in the order of `ids`:

    * kind "mean", `values`: a query's nDCG or MAP (retrieval, reranking), or the share of mteb's draws of shots with
      which a text is classified rightly; their mean is the score;
    * kind "spearman" or "average_precision", `predicted` (cosine similarity) and `truth` (grade, label) of each pair:
      the score is no mean of items. For max_ap it is the average precision of the cosine, cosine_ap.

    None where the task has no items of these kinds, or mteb saved no predictions.
    """
    path = folder / task.prediction_file_name
    make = _maker(task)
    if make is None or not path.is_file():
        return None
    saved = json.loads(path.read_text(encoding="utf-8"))
    splits: dict[str, dict[str, Item]] = {}
    for subset, of_splits in saved.items():
        for split, predicted in of_splits.items() if subset != "mteb_model_meta" else ():
            splits.setdefault(split, {})[subset] = make(task, predicted, _data(task, subset, split), split)
    meta = task.metadata
    about = {"task": meta.name, "type": meta.type, "dataset_revision": meta.revision, "splits": splits}
    target = folder / f"{meta.name}_items.json"
    write_text(target, json.dumps(about, allow_nan=False) + "\n")
    return target


def _maker(task: Any) -> Callable[[Any, Any, Any, str], Item] | None:
    meta = task.metadata
    if meta.type in ("Retrieval", "Reranking", "InstructionRetrieval") and MEASURE.fullmatch(meta.main_score):
        return _queries
    if meta.type == "STS" and meta.main_score == "cosine_spearman":
        return _graded_pairs
    if meta.type == "PairClassification" and meta.main_score.endswith("_ap"):
        return _labelled_pairs
    if meta.type == "Classification" and meta.main_score == "accuracy" and not task.is_cross_validation:
        return _texts
    return None


def _data(task: Any, subset: str, split: str) -> Any:
    """The data of one subset as mteb takes them: monolingual data sets have no level for the subset."""
    data = task.dataset.get(subset, task.dataset)
    return data if task.metadata.type == "Classification" else data[split]


def _queries(task: Any, predicted: dict[str, dict[str, float]], data: Any, split: str) -> Item:
    """One value a query, by the library, the options and the ids that mteb averages."""
    import pytrec_eval

    name, at = MEASURE.fullmatch(task.metadata.main_score).groups()  # type: ignore[union-attr]
    if task.ignore_identical_ids:
        predicted = {q: {d: s for d, s in found.items() if d != q} for q, found in predicted.items()}
    if task.skip_first_result:
        predicted = {q: dict(sorted(f.items(), key=lambda x: x[1], reverse=True)[1:]) for q, f in predicted.items()}
    measure = TREC[name].format(at)
    judged = {query: dict(grades) for query, grades in data["relevant_docs"].items()}
    found = pytrec_eval.RelevanceEvaluator(judged, {measure.replace(f"_{at}", f".{at}")}).evaluate(predicted)
    ids = sorted(found)
    values = [found[query][measure] for query in ids]
    return {"statistic": task.metadata.main_score, "kind": "mean", "ids": ids, "values": values}


def _graded_pairs(task: Any, predicted: dict[str, list[float]], data: Any, split: str) -> Item:
    return _pairs("cosine_spearman", "spearman", predicted, list(data["score"]))


def _labelled_pairs(task: Any, predicted: dict[str, list[float]], data: Any, split: str) -> Item:
    rows = data[0] if len(data) == 1 else data  # older data sets hold all pairs in one row
    return _pairs("cosine_ap", "average_precision", predicted, list(rows[task.label_column_name]))


def _pairs(statistic: str, kind: str, predicted: dict[str, list[float]], truth: list[float]) -> Item:
    cosine = predicted["cosine_scores"]
    ids = list(map(str, range(len(cosine))))
    return {"statistic": statistic, "kind": kind, "ids": ids, "predicted": cosine, "truth": list(map(float, truth))}


def _texts(task: Any, predicted: list[list[Any]], data: Any, split: str) -> Item:
    labels = list(data[split][task.label_column_name])
    right = [sum(draw[k] == label for draw in predicted) / len(predicted) for k, label in enumerate(labels)]
    return {"statistic": "accuracy", "kind": "mean", "ids": list(map(str, range(len(labels)))), "values": right}
