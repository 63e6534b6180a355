"""Per-item scores beside mteb's saved predictions: what a test within one task needs, without mteb.

<results>/predictions/<study>__<design>/<revision>/<task>_predictions.json   mteb's own: no truth in it
                                              .../<task>_items.json          written here
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from records.files import write_text

# Main score of a retrieval task -> the name of the same measure for one query in pytrec_eval, mteb's library for it.
MEASURE = re.compile(r"(ndcg|map|recall|precision|hit_rate)_at_(\d+)")
TREC = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P", "hit_rate": "success"}
Item = dict[str, Any]


def write_items(folder: Path, task: Any) -> None:
    """Write `<task>_items.json` from the predictions in `folder` and the truth in the loaded `task`.

    {"task", "type", "dataset_revision", "splits": {split: {subset: entry}}}; an entry has the `statistic`, its `kind`
    and, one a item in the order of `ids`:

    * kind "mean", `values`: of a query (nDCG, MAP), of a text (the share of mteb's draws of shots with which it is
      classified rightly); their mean is the score;
    * kind "spearman", `predicted` (cosine similarity) and `truth` (grade) of each pair: the score is no mean of items.
    """
    path = folder / task.prediction_file_name
    make = _maker(task)
    if make is None or not path.is_file():
        return
    saved = json.loads(path.read_text(encoding="utf-8"))
    splits: dict[str, dict[str, Item]] = {}
    for subset, of_splits in saved.items():
        for split, predicted in of_splits.items() if subset != "mteb_model_meta" else ():
            data = task.dataset.get(subset, task.dataset)[split]  # monolingual ones have no level for the subset
            splits.setdefault(split, {})[subset] = make(task, predicted, data)
    meta = task.metadata
    about = {"task": meta.name, "type": meta.type, "dataset_revision": meta.revision, "splits": splits}
    write_text(folder / f"{meta.name}_items.json", json.dumps(about, allow_nan=False) + "\n")


def _maker(task: Any) -> Callable[[Any, Any, Any], Item] | None:
    kind, score = task.metadata.type, task.metadata.main_score
    if kind in ("Retrieval", "Reranking", "InstructionRetrieval") and MEASURE.fullmatch(score):
        return _queries
    if kind == "Classification" and score == "accuracy" and not task.is_cross_validation:
        return _texts
    return _pairs if kind == "STS" and score == "cosine_spearman" else None


def _queries(task: Any, predicted: dict[str, dict[str, float]], data: Any) -> Item:
    """One value a query, by the library, the options and the ids that mteb averages."""
    import pytrec_eval

    name, at = MEASURE.fullmatch(task.metadata.main_score).groups()  # type: ignore[union-attr]
    if task.ignore_identical_ids:
        predicted = {q: {d: s for d, s in scores.items() if d != q} for q, scores in predicted.items()}
    if task.skip_first_result:
        predicted = {q: dict(sorted(f.items(), key=lambda x: x[1], reverse=True)[1:]) for q, f in predicted.items()}
    measure = f"{TREC[name]}_{at}"
    judged = {query: dict(grades) for query, grades in data["relevant_docs"].items()}
    by_query = pytrec_eval.RelevanceEvaluator(judged, {measure.replace(f"_{at}", f".{at}")}).evaluate(predicted)
    values = {query: by_query[query][measure] for query in sorted(by_query)}
    return {"statistic": f"{name}_at_{at}", "kind": "mean", "ids": list(values), "values": list(values.values())}


def _pairs(task: Any, predicted: dict[str, list[float]], data: Any) -> Item:
    cosine, truth = predicted["cosine_scores"], list(map(float, data["score"]))
    about = {"statistic": task.metadata.main_score, "kind": "spearman", "ids": list(map(str, range(len(cosine))))}
    return {**about, "predicted": cosine, "truth": truth}


def _texts(task: Any, predicted: list[list[Any]], data: Any) -> Item:
    labels = list(data[task.label_column_name])
    right = [sum(draw[k] == label for draw in predicted) / len(predicted) for k, label in enumerate(labels)]
    return {"statistic": "accuracy", "kind": "mean", "ids": list(map(str, range(len(labels)))), "values": right}
