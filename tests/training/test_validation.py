"""nDCG@10 by hand."""

import math

import numpy as np

from training.validation import ndcg_at_10


def test_ndcg_with_one_relevant_document():
    documents = np.eye(12, dtype=np.float32)
    queries = documents[[3, 5]].copy()
    queries[1, 7] = 2.0  # document 7 comes first, the right one second
    assert ndcg_at_10(queries, documents, [3, 5]) == (1 + 1 / math.log2(3)) / 2
    assert ndcg_at_10(np.ones((1, 12), np.float32), documents, [0]) == 0.0, "all tied: no credit for luck"


def test_ndcg_of_vectors_of_zeros_is_no_luck():
    documents = np.eye(12, dtype=np.float32)
    documents[4] = 0.0
    queries = np.stack([np.zeros(12, np.float32), documents[3]])
    assert ndcg_at_10(queries, documents, [0, 3]) == 0.5, "a query of zeros ties with all twelve, so its rank is 12"
