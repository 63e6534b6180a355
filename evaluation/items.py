"""Per-item scores beside mteb's saved predictions: what a test within one task needs, without mteb.

<results>/predictions/<study>__<design>/<revision>/<task>_predictions.json   mteb's own: no truth in it
                                              .../<task>_items.json          written here
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.words import spaced_words, terms_of, word_count
from evaluation.tasks.task_data import joined
from records.atomic import write_text

# Main score of a retrieval task -> the name of the same measure for one query in pytrec_eval, mteb's library for it.
MEASURE = re.compile(r"(ndcg|map|recall|precision|hit_rate)_at_(\d+)")
TREC = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P", "hit_rate": "success"}
Item = dict[str, Any]

FEATURES = ("query_words", "query_names", "document_words", "overlap")
OUTSIDE = "\"'`.,;:!?()[]{}<>*"  # punctuation around a word, which is no part of it
JOINED = re.compile(r"\d|_|\w\.\w\w|\w\(\w")  # a digit, or parts joined: np.mean, f(x), but not e.g.


def write_items(folder: Path, task: Any) -> None:
    """Write `<task>_items.json` from the predictions in `folder` and the truth in the loaded `task`.

    {"task", "type", "dataset_revision", "splits": {split: {subset: entry}}}; an entry has the `statistic`, its `kind`
    and, one a item in the order of `ids`:

    * kind "mean", `values`: a query's nDCG or MAP (retrieval, reranking), the share of mteb's draws of shots with
      which a text is classified rightly, or the correlation of a text's summaries with their grades (summarization);
      their mean is the score;
    * kind "spearman" or "average_precision", `predicted` (cosine similarity) and `truth` (grade, label) of each pair:
      the score is no mean of items. For max_ap it is the average precision of the cosine, cosine_ap.

    A query's entry also has `features` of its text and of its relevant documents (`text_features`).
    Nothing is written where the task has no items of these kinds, or mteb saved no predictions.
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
    if kind == "PairClassification" and score.endswith("_ap"):
        return _pairs
    if kind == "Classification" and score == "accuracy" and not task.is_cross_validation:
        return _texts
    if kind in ("STS", "Summarization") and score == "cosine_spearman":
        return _pairs if kind == "STS" else _summaries
    return None


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
    about = {"statistic": task.metadata.main_score, "kind": "mean"}
    return {**about, "ids": list(values), "values": list(values.values()), **_features(data, judged, list(values))}


def _features(data: Any, judged: dict[str, dict[str, int]], asked: list[str]) -> Item:
    """Return {"features": ...} of the queries in the order of `asked`; nothing where they or the documents are no
    texts."""
    relevant = {query: [doc for doc, grade in judged[query].items() if grade > 0] for query in asked}
    wanted = {doc for docs in relevant.values() for doc in docs}
    texts = {}
    for name, kept in (("queries", set(asked)), ("corpus", wanted)):
        places = [k for k, key in enumerate(data[name]["id"]) if key in kept]
        rows = data[name].select(places)  # of a corpus of millions a few
        if not all(isinstance(row.get("text"), str) for row in rows):
            return {}
        texts[name] = {row["id"]: joined({"title": row.get("title"), "text": row["text"]}) for row in rows}
    relevant = {query: [doc for doc in docs if doc in texts["corpus"]] for query, docs in relevant.items()}
    return {"features": text_features(texts["queries"], texts["corpus"], relevant)}


def _pairs(task: Any, predicted: dict[str, list[float]], data: Any) -> Item:
    if task.metadata.type == "STS":
        about, truth = {"statistic": "cosine_spearman", "kind": "spearman"}, data["score"]
    else:
        rows = data[0] if len(data) == 1 else data  # older data sets hold all pairs in one row
        about, truth = {"statistic": "cosine_ap", "kind": "average_precision"}, rows[task.label_column_name]
    cosine = predicted["cosine_scores"]
    ids = list(map(str, range(len(cosine))))
    return {**about, "ids": ids, "predicted": cosine, "truth": list(map(float, truth))}


def _texts(task: Any, predicted: list[list[Any]], data: Any) -> Item:
    labels = list(data[task.label_column_name])
    right = [sum(draw[k] == label for draw in predicted) / len(predicted) for k, label in enumerate(labels)]
    return {"statistic": "accuracy", "kind": "mean", "ids": list(map(str, range(len(labels)))), "values": right}


def _summaries(task: Any, predicted: dict[str, list[list[float]]], data: Any) -> Item:
    """One value a text, its Spearman correlation. mteb leaves out texts whose grades are all alike, and its file of
    predictions does not say which; it would drop one with equal cosines too, which real vectors do not give."""
    from scipy.stats import spearmanr

    varied = [k for k, grades in enumerate(data[task.relevancy_column_name]) if len(set(grades)) > 1]
    grades, cosines = predicted["human_scores"], predicted["cosine_scores"]
    values = [float(spearmanr(*row).statistic) for row in zip(grades, cosines, strict=True)]
    ids = [str(k) for k, _ in zip(varied, values, strict=True)]
    return {"statistic": "cosine_spearman", "kind": "mean", "ids": ids, "values": values}


def text_features(
    queries: Mapping[str, str], documents: Mapping[str, str], relevant: Mapping[str, Sequence[str]]
) -> dict[str, list[float | None]]:
    """Return feature -> one value per query of `relevant`, in its order: a mean over its documents, None without any.

    queries, documents: id -> text; relevant: query -> ids of its relevant documents.

    * query_words, document_words: words between spaces (`spaced_words`);
    * query_names: share of the query's words that look like a name (`is_name`);
    * overlap: share of the query's terms that stand in the document, each weighted by its BM25 idf over the relevant
      documents (Robertson and Zaragoza 2009, section 3.1, plus one as Lucene has it), so that "the" counts for little.
    """
    terms = {key: set(terms_of(text)) for key, text in documents.items()}
    frequency = Counter(term for of_document in terms.values() for term in of_document)
    rows: list[tuple[float | None, ...]] = []
    for query, keys in relevant.items():
        words, asked = spaced_words(queries[query]), set(terms_of(queries[query]))
        idf = {t: math.log1p((len(terms) - frequency[t] + 0.5) / (frequency[t] + 0.5)) for t in sorted(asked)}
        shared = [math.fsum(idf[t] for t in asked & terms[key]) / math.fsum(idf.values()) for key in keys if idf]
        names = sum(is_name(word, k == 0) for k, word in enumerate(words))
        lengths = [word_count(documents[key]) for key in keys]
        rows.append((len(words), names / max(1, len(words)), _mean(lengths), _mean(shared)))
    return {name: [row[k] for row in rows] for k, name in enumerate(FEATURES)}


def is_name(word: str, first: bool = False) -> bool:
    """Tell whether a word looks like a name or an identifier: it holds a digit, an underscore, joined parts
    (`np.mean`, `f(x)`) or a capital after its first letter, or begins with a capital and is not the `first` word."""
    bare = word.strip(OUTSIDE)
    capital = bare[1:] != bare[1:].lower() or (len(bare) > 1 and bare[0].isupper() and not first)
    return capital or bool(JOINED.search(bare))


def _mean(values: Sequence[float]) -> float | None:
    return round(math.fsum(values) / len(values), 6) if values else None
