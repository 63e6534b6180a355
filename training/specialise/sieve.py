"""Which written pairs are kept: by length, by near-copies, and by whether the query finds its answer again."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from corpora.near_copies import NearCopies
from corpora.triples import Triple
from corpora.words import word_count


class Sieve:
    """Judges pairs in their order: what one copies must have come before it."""

    def __init__(self, seeds: Sequence[Triple], cfg: dict[str, Any]) -> None:
        self.least, self.threshold = (cfg["query_words"], cfg["answer_words"]), cfg["copies"]
        self.known = NearCopies(self.threshold)
        for text in (text for t in seeds for text in (t.query, t.positive)):
            self.known.keep(text)

    def whole(self, text: str | None, of_answer: bool) -> bool:
        """Whether a text has ended (None: it did not) and is long enough."""
        return text is not None and word_count(text) >= self.least[of_answer]

    def passes(self, query: str, answer: str) -> bool:
        """Whether a pair copies no seed, no earlier pair, and its answer not its query; then none may copy it."""
        own = NearCopies(self.threshold)
        own.keep(query)
        if answer in own or query in self.known or answer in self.known:
            return False
        self.known.keep(query)
        self.known.keep(answer)
        return True


def ranks(queries: Tensor, answers: Tensor, block: int = 1024) -> Tensor:
    """Return [N] the rank of answer i for query i among all answers by cosine, from 1; equal ones share the best rank.

    queries: [N, E], answers: [M, E], unit vectors, the first N of the queries. Round-trip consistency: Alberti et al.
    2019, arXiv 1906.05416, by rank as in Dai et al. 2022 (Promptagator, arXiv 2209.11755).
    """
    parts = []
    for start in range(0, len(queries), block):
        scores = queries[start : start + block] @ answers.T
        places = torch.arange(start, start + len(scores), device=scores.device)
        parts.append((scores > scores.gather(1, places[:, None])).sum(1) + 1)
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long)
