"""Topics of clusters of texts, by their words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from analysis.statistics.arrays import Floats
from cli.errors import UserError
from representation.moee.clusters import Labels


def class_tf_idf(counts: NDArray[np.int64]) -> Floats:
    """Return [C, V] weights tf_{t,c} log(1 + A / tf_t) of the words of C clusters; counts: [C, V], how often.

    tf_t: how often a word stands in all clusters, at least once; A: words of a cluster on average. The class-based
    tf-idf of BERTopic (Grootendorst, arXiv 2203.05794, section 3.3).
    """
    weights: Floats = counts * np.log1p(counts.sum() / len(counts) / counts.sum(axis=0))
    return weights


def topics(texts: Sequence[str], labels: Labels, words: int) -> list[dict[str, Any]]:
    """Return of each cluster, the largest first, its number of texts and its `words` words of highest weight.

    labels: [n] the cluster of each text. Words are those of scikit-learn's `CountVectorizer` without its English stop
    words; of equal weights the first in the alphabet. Raises `UserError` where there is no word.
    """
    counter = CountVectorizer(stop_words="english")
    try:
        of_texts = counter.fit_transform(texts)
    except ValueError as error:
        raise UserError("The texts hold no word that could name a topic. Raise texts.") from error
    names, sizes = np.unique(labels, return_counts=True)
    counts = np.stack([np.asarray(of_texts[labels == name].sum(axis=0)).ravel() for name in names])
    weights, vocabulary = class_tf_idf(counts), counter.get_feature_names_out()
    rows = []
    for row in np.argsort(-sizes, kind="stable"):
        best = [k for k in np.argsort(-weights[row], kind="stable")[:words] if counts[row, k]]
        rows.append({"texts": int(sizes[row]), "words": ", ".join(vocabulary[best])})
    return rows
