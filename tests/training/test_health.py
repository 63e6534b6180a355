"""Collapse is named, and only collapse."""

import math

import torch

from training.validation import collapse, ndcg_at_10


def test_collapse_is_named():
    torch.manual_seed(0)
    varied = torch.randn(50, 16)
    assert collapse(1.0, 128, varied) is None
    assert "at chance" in (collapse(math.log(128), 128, varied) or "")
    alike = torch.ones(50, 16) + 0.01 * torch.randn(50, 16)
    assert "alike" in (collapse(1.0, 128, alike) or "")


def test_ndcg_with_one_relevant_document():
    import numpy as np

    documents = np.eye(12, dtype=np.float32)
    queries = documents[[3, 5]].copy()
    queries[1, 7] = 2.0  # document 7 comes first, the right one second
    assert ndcg_at_10(queries, documents, [3, 5]) == (1 + 1 / math.log2(3)) / 2
    assert ndcg_at_10(np.ones((1, 12), np.float32), documents, [0]) == 0.0, "all tied: no credit for luck"


def test_ndcg_of_vectors_of_zeros_is_no_luck():
    import numpy as np

    documents = np.eye(12, dtype=np.float32)
    documents[4] = 0.0
    queries = np.stack([np.zeros(12, np.float32), documents[3]])
    assert ndcg_at_10(queries, documents, [0, 3]) == 0.5, "a query of zeros ties with all twelve, so its rank is 12"
