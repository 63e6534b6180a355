"""Which written pairs are kept: by length, by near-copies, and by whether the query finds its answer again."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from corpora.near_copies import NearCopies
from corpora.triples import Triple
from corpora.words import word_count

Config = dict[str, Any]
DROPPED = {
    "unfinished": "had not ended by the last token",
    "short": "are short",
    "copies_of_seeds": "nearly copy a seed",
    "copies_of_query": "answer with their query",
    "copies_of_others": "nearly copy another one",
    "not_returned": "do not find their answer",
}


class Sieve:
    """Judges pairs in their order: what one copies must have come before it."""

    def __init__(self, seeds: Sequence[Triple], cfg: Config) -> None:
        self.least, self.threshold = (cfg["query_words"], cfg["answer_words"]), cfg["copies"]
        self.seeds, self.others = NearCopies(self.threshold), NearCopies(self.threshold)
        for text in (text for t in seeds for text in (t.query, t.positive)):
            self.seeds.keep(text)

    def too_short(self, text: str | None, of_answer: bool) -> str:
        """Return why a text is dropped by itself, "" where it is not. None: it did not end."""
        return "unfinished" if text is None else "short" if word_count(text) < self.least[of_answer] else ""

    def fault(self, query: str, answer: str) -> str:
        """Return the key of `DROPPED` that drops a pair by its copies, "" where none does; then none may copy it."""
        query_copies = NearCopies(self.threshold)
        query_copies.keep(query)
        checks = {
            "copies_of_seeds": query in self.seeds or answer in self.seeds,
            "copies_of_query": answer in query_copies,
            "copies_of_others": query in self.others or answer in self.others,
        }
        faults = [name for name, copies in checks.items() if copies]
        if not faults:
            self.others.keep(query)
            self.others.keep(answer)
        return faults[0] if faults else ""


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


def report(out: str, facts: Config) -> str:
    """Return the facts of `training.specialise.command` in words."""
    n, wanted = facts["generated"], facts["settings"]["pairs"]
    dropped = ", ".join(f"{count:,} {DROPPED[name]}" for name, count in facts["dropped"].items() if count)
    few = f" Fewer than pairs={wanted:,}: raise attempts, or loosen a filter." if facts["kept"] < wanted else ""
    kept = f"{facts['kept']:,} pairs of {n:,} that were written; {facts['share_kept']:.1%} pass every filter"
    return f"{out}: {kept}. Dropped: {dropped or 'none'}.{few}"
